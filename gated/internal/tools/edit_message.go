package tools

import (
	"cmp"
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

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
		Description: "Replaces the text of a message that you have sent into this chat, or the caption of a file. Use it to correct a mistake or to update a sign of life. " +
			"Users are not notified: if they must notice it, send a new message. You can edit only your own messages.",
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
		return refuse("message %d is not one that you sent into this chat: edit your own messages only, and send a new one otherwise", m.ID)
	case m.Kind != msg.KindMessage && m.Kind != msg.KindFile:
		return refuse("message %d has no text to edit: give the id of a message or a file", m.ID)
	}
	return checkSent(m)
}
