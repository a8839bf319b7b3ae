package tools

import (
	"cmp"
	"context"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/emoji"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
)

type sendMessageIn struct {
	Text  string  `json:"text" jsonschema:"the message, in markdown"`
	Topic *string `json:"topic,omitempty" jsonschema:"where in this chat: a topic such as #deploy, or a thread as in the prompt; empty: outside of both; left out: where the message that you answer came from"`
}

// messageOut is the result of tools that write one message.
type messageOut struct {
	MessageID int64 `json:"message_id" jsonschema:"the message's id, as in prompts"`
}

func sendMessage() Tool {
	return define(Tool{
		Name: "send_message", Title: "Send a message", Kind: Adds,
		Description: "Sends a message into this chat at once, before your answer. Use it for a sign of life " +
			"during long work, or for a text that belongs in another topic of this chat. " +
			"Your answer is sent when your turn ends: do not send it with this tool, too.",
		Bounds: map[string]Bound{"text": Text(1, maxText), "topic": Text(0, maxTopic)},
	}, func(ctx context.Context, c *Caller, in sendMessageIn) (out messageOut, err error) {
		in.Text = c.markdown(in.Text)
		if in.Text == "" {
			return out, refuse("text is empty: nothing is sent. End your turn with an empty answer to stay silent")
		}
		var text string
		var files []msg.Attachment
		out, err = onceAfter(ctx, c, in, func() error {
			text, files = c.splitLong(ctx, in.Text)
			return nil
		}, func(tx *store.Tx) (out messageOut, err error) {
			m, err := c.outboundTo(ctx, tx, in.Topic)
			if err != nil {
				return out, err
			}
			if in.Topic != nil {
				if err = endForkInThread(ctx, tx, c.Turn, *in.Topic, c.Services.now()); err != nil {
					return out, err
				}
			}
			out.MessageID, err = putWithFiles(tx, m, text, files)
			return out, err
		})
		if err != nil {
			c.discard(files...)
		}
		return out, err
	})
}

// putWithFiles stores a text to where a message goes, and each file as a message after it. It returns the id of the
// text.
func putWithFiles(tx *store.Tx, m *msg.Message, text string, files []msg.Attachment) (id int64, err error) {
	of := *m
	m.Content = text
	if id, _, err = tx.PutMessage(m); err != nil {
		return 0, err
	}
	for _, a := range files {
		file := of
		file.Kind, file.Attachments = msg.KindFile, []msg.Attachment{a}
		if _, _, err := tx.PutMessage(&file); err != nil {
			return 0, err
		}
	}
	return id, nil
}

const (
	// maxText bounds a text that an agent sends, in characters: a quarter of a row's size.
	maxText = 32 << 10
	// maxTopic bounds the name of a topic or thread, in characters.
	maxTopic = 200
)

// clean returns a text as users may see it: without hidden parts and the run's secrets.
func (c *Caller) clean(text string) string { return c.Redact(agentproto.Strip(text)) }

// markdown is clean of a text in markdown, "" if nothing of it is visible.
func (c *Caller) markdown(text string) string {
	if text = c.clean(text); render.Blank(text) {
		return ""
	}
	return text
}

// outbound returns a message to the place of the turn, without content.
func (c *Caller) outbound() (*msg.Message, error) {
	if err := c.checkReaders(); err != nil {
		return nil, err
	}
	now := c.Services.now()
	return &msg.Message{
		ChatJID: c.Turn.ChatJID, Topic: c.Turn.Place, ThreadID: c.Turn.ThreadID, TurnID: c.Turn.ID,
		Sender: msg.AgentSender(c.Turn.Folder), SenderName: c.Config.AssistantName, IsBot: true, Source: msg.SourceTool,
		Direction: msg.Out, Timestamp: now, ReceivedAt: now, OutState: msg.OutStateOf(c.Turn.ChatJID),
	}, nil
}

// outboundTo returns a new message to a topic of the caller's chat, nil for the place of the turn, without content.
func (c *Caller) outboundTo(ctx context.Context, tx *store.Tx, topic *string) (*msg.Message, error) {
	m, err := c.outbound()
	if err == nil && topic != nil {
		m.ThreadID, m.Topic, err = placeOf(ctx, tx.Reader, c.Turn, *topic)
	}
	if err != nil {
		return nil, err
	}
	return m, checkTakes(ctx, tx.Reader, m.ChatJID, m.ThreadID, "give the id of a post as topic")
}

type editMessageIn struct {
	MessageID int64  `json:"message_id" jsonschema:"a message of yours in this chat"`
	Text      string `json:"text" jsonschema:"the new text, whole, in markdown"`
}

type changedOut struct {
	OK bool `json:"ok" jsonschema:"the change is stored, and follows the message to the platform"`
}

func editMessage() Tool {
	return define(Tool{
		Name: "edit_message", Title: "Edit a message", Kind: Sets,
		Description: "Replaces the text of a message that you have sent into this chat, or the caption of a file. " +
			"Use it to correct a mistake or to update a sign of life. Users are not notified: " +
			"if they must notice it, send a new message. You can edit only your own messages.",
		Bounds: map[string]Bound{"message_id": Number(1, maxID), "text": Text(1, maxText)},
	}, func(ctx context.Context, c *Caller, in editMessageIn) (out changedOut, err error) {
		if in.Text = c.markdown(in.Text); in.Text == "" {
			return out, refuse("text is empty: give the whole new text")
		}
		return once(ctx, c, in, func(tx *store.Tx) (out changedOut, err error) {
			of, err := c.CheckMessage(ctx, tx.Reader, in.MessageID)
			if err != nil {
				return out, err
			}
			if err := checkEditable(c.Turn, of); err != nil {
				return out, err
			}
			// A question stays as users have read it when they answered.
			if ask, err := tx.AskOfMessage(ctx, of.ID); err != nil || ask != nil {
				return out, cmp.Or(err,
					refuse("message %d is a question to users, which only its answer changes: send a new message",
						of.ID))
			}
			return c.change(ctx, tx, msg.KindEdit, of, in.Text)
		})
	})
}

// maxID is the largest number that JSON clients keep exact.
const maxID = 1 << 53

// checkEditable returns a refusal unless a message is one of a turn's group in its chat.
func checkEditable(t *msg.Turn, m *msg.Message) error {
	own := m.Direction == msg.Out && m.ChatJID == t.ChatJID && m.Sender == msg.AgentSender(t.Folder) &&
		(m.Source == msg.SourceAgent || m.Source == msg.SourceTool)
	switch {
	case !own:
		return refuse("message %d is not one that you sent into this chat: edit your own messages only, "+
			"and send a new one otherwise", m.ID)
	case m.Kind != msg.KindMessage && m.Kind != msg.KindFile:
		return refuse("message %d has no text to edit: give the id of a message or a file", m.ID)
	}
	return checkSent(m)
}

type reactIn struct {
	MessageID int64  `json:"message_id" jsonschema:"a message of this chat"`
	Emoji     string `json:"emoji" jsonschema:"one emoji, such as 👍, or its name between colons, such as :tada:"`
	Remove    bool   `json:"remove,omitempty" jsonschema:"take back a reaction of yours"`
}

func react() Tool {
	return define(Tool{
		Name: "react", Title: "React to a message", Kind: Sets,
		Description: "Reacts to a message of this chat with an emoji: the smallest answer there is, " +
			"for a thank-you or an agreement that needs no words. End your turn with an empty answer if the reaction " +
			"says it all. Telegram has a fixed set, and shows one reaction of yours on a message; " +
			"Slack takes names of emoji, too.",
		Bounds: map[string]Bound{"message_id": Number(1, maxID), "emoji": Text(1, 100)},
	}, func(ctx context.Context, c *Caller, in reactIn) (out changedOut, err error) {
		if err := c.checkReaders(); err != nil {
			return out, err
		}
		content, err := emoji.For(msg.FamilyOf(c.Turn.ChatJID), in.Emoji)
		if err != nil {
			return out, refuse("%v", err)
		}
		if in.Remove {
			content = "-" + content
		}
		return once(ctx, c, in, func(tx *store.Tx) (out changedOut, err error) {
			of, err := c.reactable(ctx, tx.Reader, in.MessageID)
			if err != nil {
				return out, err
			}
			return c.change(ctx, tx, msg.KindReaction, of, content)
		})
	})
}

// reactable returns the message of the caller's chat that an id stands for, as it is on the platform.
func (c *Caller) reactable(ctx context.Context, r store.Reader, id int64) (*msg.Message, error) {
	m, err := c.CheckMessage(ctx, r, id)
	if err != nil {
		return nil, err
	}
	if m.Direction == msg.In && m.PlatformID == "" && m.DerivedFrom != 0 { // #name or @name was cut off
		original, err := r.Message(ctx, m.DerivedFrom)
		if err != nil {
			return nil, err
		}
		if original != nil {
			m = original
		}
	}
	switch {
	case m.ChatJID != c.Turn.ChatJID:
		return nil, refuse("message %d is of another chat: react to messages of this one", id)
	case m.Direction == msg.Out && m.Kind.Changes():
		return nil, refuse("message %d is an edit or a reaction: give the id of a message", id)
	case m.Direction == msg.Out:
		return m, checkSent(m)
	case m.PlatformID == "":
		return nil, refuse("message %d is not on the platform: answer with a text", id)
	}
	return m, nil
}
