package tools

import (
	"context"

	"arizuko/pkg/agentproto"
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
		Description: "Sends a message into this chat at once, before your answer. Use it for a sign of life during long work, or for a text that belongs in another topic of this chat. " +
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
