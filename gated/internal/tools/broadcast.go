package tools

import (
	"context"
	"fmt"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type broadcastIn struct {
	Text  string   `json:"text" jsonschema:"the message, in markdown"`
	Chats []string `json:"chats,omitempty" jsonschema:"chats that your group answers, such as telegram:-100123; left out: all of them"`
}

type broadcastOut struct {
	MessageIDs []int64  `json:"message_ids" jsonschema:"one message a chat"`
	LeftOut    []string `json:"left_out,omitempty" jsonschema:"chats that got none, since they are forums: a message there has to be in a post"`
}

const (
	// maxBroadcastChats bounds one call, which is one transaction.
	maxBroadcastChats = 100
	// maxBroadcasts bounds the calls of a group within broadcastTime: each disturbs all readers of many chats.
	maxBroadcasts = 10
	broadcastTime = time.Hour
)

func broadcast() Tool {
	return define(Tool{
		Name: "broadcast", Title: "Write to all chats", Kind: Adds,
		Description: "Sends a message to chats that your group answers, at their top level: " +
			"by default to all of them, this one included, except forums, where messages are in posts. " +
			"Use it only when a user asks for an announcement, since it disturbs every reader. " +
			"Answers to it start no conversation by themselves. A group can do so 10 times an hour. " +
			"For this chat alone use send_message.",
		Bounds: map[string]Bound{"text": Text(1, maxText), "chats": List(1, maxBroadcastChats),
			"chats[]": Text(3, maxJID)},
	}, func(ctx context.Context, c *Caller, in broadcastIn) (out broadcastOut, err error) {
		in.Text = c.markdown(in.Text)
		if in.Text == "" {
			return out, refuse("text is empty: there is nothing to send")
		}
		var chats, leftOut []string
		return onceAfter(ctx, c, in, func() (err error) {
			chats, leftOut, err = c.broadcastChats(ctx, in.Chats)
			c.copies = len(chats)
			return err
		}, func(tx *store.Tx) (out broadcastOut, err error) {
			n, err := rows.CountGroupCalls(ctx, tx.Reader, c.Turn.Folder, c.Tool,
				c.Services.now()-broadcastTime.Milliseconds())
			if err != nil {
				return out, err
			}
			if n >= maxBroadcasts {
				return out, refuse("%s has broadcast %d times within the hour, which is the limit: "+
					"wait, or ask an operator to use gated broadcast", c.Turn.Folder, n)
			}
			out.MessageIDs, out.LeftOut = []int64{}, leftOut
			for _, jid := range chats {
				id, err := rows.PutBroadcastMessage(tx, &msg.Message{ChatJID: jid, Content: in.Text,
					Sender: msg.AgentSender(c.Turn.Folder), OnBehalfOf: c.origin.Sender}, c.Services.now())
				if err != nil {
					return out, err
				}
				out.MessageIDs = append(out.MessageIDs, id)
			}
			return out, nil
		})
	})
}

// broadcastChats returns the named chats, by default all of the caller's group but those that are left out, or a
// refusal.
func (c *Caller) broadcastChats(ctx context.Context, named []string) (to, leftOut []string, err error) {
	if len(named) > 0 {
		return named, nil, c.checkNamed(ctx, named)
	}
	all, err := c.Services.Chats.Of(ctx, c.Services.Store.Reader, c.Turn.Folder, maxBroadcastChats+1)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("list the chats of %s: %w", c.Turn.Folder, err)
	case len(all) > maxBroadcastChats:
		return nil, nil, refuse("%s answers more than %d chats: name those to write to, or ask an operator to use "+
			"gated broadcast", c.Turn.Folder, maxBroadcastChats)
	}
	to, leftOut, err = rows.TopLevels(ctx, c.Services.Store.Reader, all)
	if err == nil && len(to) == 0 {
		err = refuse("no chat that takes messages outside of posts is answered by %s: there is none to write to",
			c.Turn.Folder)
	}
	return to, leftOut, err
}

// checkNamed returns a refusal unless the caller may broadcast to all of these chats.
func (c *Caller) checkNamed(ctx context.Context, named []string) error {
	seen := map[string]bool{}
	for _, jid := range named {
		if msg.NoUsers(jid) {
			return refuse("no user reads chat %.100q: name chats with users, or use delegate for another group",
				jid)
		}
		if err := c.CheckChat(ctx, c.Services.Store.Reader, jid); err != nil {
			return err
		}
		if seen[jid] {
			return refuse("chat %.100q is named twice: name each chat once", jid)
		}
		seen[jid] = true
		if err := checkTakes(ctx, c.Services.Store.Reader, jid, "",
			"leave it out, and use send_message in a post"); err != nil {
			return err
		}
	}
	return nil
}
