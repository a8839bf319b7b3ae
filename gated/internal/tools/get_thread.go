package tools

import (
	"context"
	"math"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
)

const (
	defaultAround = 10
	maxAround     = 50
)

type getThreadIn struct {
	MessageID int64 `json:"message_id" jsonschema:"a message's id, from a prompt or search_messages"`
	Around    int   `json:"around,omitempty" jsonschema:"how many messages before it, and as many after it; left out: 10"`
}

type getThreadOut struct {
	Messages  []foundMessage `json:"messages" jsonschema:"the messages, oldest first"`
	Truncated bool           `json:"truncated" jsonschema:"the last ones are left out, since the result is too large: ask for fewer"`
}

func getThread() Tool {
	return define(Tool{
		Name: "get_thread", Title: "Read around a message", Kind: Searches,
		Description: "Shows the messages before and after a message in its chat, or in its thread if it is in one. Use it when a message alone does not say what it was about.",
		Bounds:      map[string]Bound{"message_id": Number(1, math.MaxInt32*1e6), "around": Number(0, maxAround)},
	}, func(ctx context.Context, c *Caller, in getThreadIn) (out getThreadOut, err error) {
		r := c.Services.Store
		m, err := c.CheckMessage(ctx, r.Reader, in.MessageID)
		if err != nil {
			return out, err
		}
		around := in.Around
		if around == 0 {
			around = defaultAround
		}
		rows, err := rows.Around(ctx, r.Reader, m, around)
		if err != nil {
			return out, err
		}
		var mine []*msg.Message
		for _, row := range rows {
			owned := c.isOwn(row.ChatJID) // a chat of another group may have rows of both
			if !owned {
				if owned, err = c.owns(ctx, r.Reader, row); err != nil {
					return out, err
				}
			}
			if owned {
				mine = append(mine, row)
			}
		}
		out.Messages, out.Truncated = c.found(mine)
		return out, nil
	})
}
