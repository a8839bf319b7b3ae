package tools

import (
	"context"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type pollCloseIn struct {
	PollID int64 `json:"poll_id" jsonschema:"the poll, as in poll_create and poll_list"`
}

type pollCloseOut struct {
	PollID int64  `json:"poll_id" jsonschema:"the poll"`
	State  string `json:"state" jsonschema:"closed"`
}

func pollClose() Tool {
	return define(Tool{
		Name: "poll_close", Title: "Close a poll", Kind: Removes,
		Description: "Closes a poll of your group before its time: later votes do not count, and the chat sees the result where the poll is. poll_list has the final counts. A closed poll stays closed.",
		Bounds:      map[string]Bound{"poll_id": Number(1, maxID)},
	}, func(ctx context.Context, c *Caller, in pollCloseIn) (out pollCloseOut, err error) {
		return once(ctx, c, in, func(tx *store.Tx) (out pollCloseOut, err error) {
			poll, err := rows.Poll(ctx, tx.Reader, in.PollID)
			if err != nil {
				return out, err
			}
			shown := false
			switch {
			case poll == nil:
			case poll.ChatJID == c.Turn.ChatJID: // also where the chat is another group's
				shown, err = c.reachesFor(ctx, tx.Reader, poll.Folder)
			default:
				shown, err = c.shows(ctx, tx.Reader, poll.Folder, poll.ChatJID)
			}
			if err != nil {
				return out, err
			}
			if !shown {
				// The same words for both: whether other groups have a poll of that id is not said.
				return out, refuse("no poll %d is in reach: take an id from poll_list", in.PollID)
			}
			out = pollCloseOut{PollID: poll.ID, State: string(msg.PollClosed)}
			if poll.State == msg.PollOpen {
				now := c.Services.now()
				if err := rows.ClosePoll(tx, poll.ID, now); err != nil {
					return out, err
				}
				err = c.Services.Objects.ClosePoll(tx, poll.ChatJID, poll.ID, now, now)
			}
			return out, err
		})
	})
}
