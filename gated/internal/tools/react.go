package tools

import (
	"context"

	"arizuko/pkg/emoji"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type reactIn struct {
	MessageID int64  `json:"message_id" jsonschema:"a message of this chat"`
	Emoji     string `json:"emoji" jsonschema:"one emoji, such as 👍, or its name between colons, such as :tada:"`
	Remove    bool   `json:"remove,omitempty" jsonschema:"take back a reaction of yours"`
}

func react() Tool {
	return define(Tool{
		Name: "react", Title: "React to a message", Kind: Sets,
		Description: "Reacts to a message of this chat with an emoji: the smallest answer there is, for a thank-you or an agreement that needs no words. " +
			"End your turn with an empty answer if the reaction says it all. Telegram has a fixed set, and shows one reaction of yours on a message; Slack takes names of emoji, too.",
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
