package tools

import (
	"context"
	"strings"

	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type injectMessageIn struct {
	ChatJID    string `json:"chat_jid" jsonschema:"a chat that your group or one below it answers, such as telegram:-100123 or group:acme/eng"`
	Content    string `json:"content" jsonschema:"the text, which is treated as if a user had written it there: #name at its start runs it in that topic, and a bare #name pins the chat to the topic for all users until a bare #, where the user for whom you work may do that"`
	Topic      string `json:"topic,omitempty" jsonschema:"the topic of the chat, such as #deploy, or a thread of it"`
	SenderName string `json:"sender_name,omitempty" jsonschema:"the name shown as the sender's; left out: your group's"`
}

func injectMessage() Tool {
	return define(Tool{
		Name: injectName, Title: "Write into a chat like a user", Kind: Adds,
		Description: "Puts a message into a chat as if a user had written it there, so that the chat's agent sees or answers it by the chat's own rules. It is not sent to the platform. " +
			"Use it to start work in another chat or topic. In this chat it starts a further turn of your own, which answers the text: do not answer yourself with it. To write to the users of this chat, use send_message; to give work to a group below and have it answered here, use delegate. " +
			"Commands such as /new and names of groups such as @eng are refused.",
		Bounds: map[string]Bound{"chat_jid": Text(3, maxJID), "content": Text(1, maxText), "topic": Text(0, maxTopic),
			"sender_name": Text(0, maxTopic)},
	}, func(ctx context.Context, c *Caller, in injectMessageIn) (out messageOut, err error) {
		if platform, room := msg.SplitJID(in.ChatJID); platform == "" || room == "" {
			return out, refuse("chat_jid %.100q is no address of a chat: it reads platform:room, such as %s",
				in.ChatJID, c.Turn.ChatJID)
		}
		in.Content = strings.TrimSpace(c.clean(in.Content))
		if in.Content == "" {
			return out, refuse("content is empty: there is nothing to write")
		}
		if _, isCommand := layers.ParseCommand(in.Content, msg.FamilyOf(in.ChatJID),
			func(string) bool { return true }); isCommand || strings.HasPrefix(in.Content, "@") {
			return out, refuse("commands and @names are for users: write plain text; reset_session begins a new session, delegate asks a group below yours")
		}
		return forward(ctx, c, in, func(tx *store.Tx) (*msg.Message, error) {
			if err := c.CheckChat(ctx, tx.Reader, in.ChatJID); err != nil {
				return nil, err
			}
			if err := c.checkInjection(ctx, tx, in); err != nil {
				return nil, err
			}
			thread, place, err := placeOf(ctx, tx.Reader, c.turnIn(in.ChatJID), in.Topic)
			if err != nil {
				return nil, err
			}
			if err := checkTakes(ctx, tx.Reader, in.ChatJID, thread,
				"give the id of a post as topic, so that the answer has a place"); err != nil {
				return nil, err
			}
			return &msg.Message{
				ChatJID: in.ChatJID, Verb: msg.VerbMessage, Content: in.Content, SenderName: in.SenderName,
				Topic: place, ThreadID: thread,
				Source: msg.SourceTool, ForwardedFrom: &msg.ReturnAddress{Kind: msg.Injection, TurnID: c.Turn.ID,
					RootTurnID: c.Turn.RootOfWork(), Depth: c.Turn.Depth + 1, Folder: c.Turn.Folder},
			}, nil
		})
	})
}

// checkInjection returns a refusal unless the chat's group may be made to work, and unless the text pins no chat that
// the turn's sender may not pin.
func (c *Caller) checkInjection(ctx context.Context, tx *store.Tx, in injectMessageIn) error {
	home, err := c.Services.Chats.Home(ctx, tx.Reader, in.ChatJID)
	if err != nil {
		return err
	}
	if err := c.checkWork(ctx, tx, home); err != nil {
		return err
	}
	return c.checkPin(ctx, tx.Reader, in.ChatJID, in.Content)
}
