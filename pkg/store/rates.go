package store

import (
	"context"
	"maps"
	"slices"
)

// RecentTurns returns the rows that turns of a folder took since a time with the senders who pay for them, in unix ms,
// oldest first. Only the folder's last 100,000 rows are considered.
func (r Reader) RecentTurns(ctx context.Context, folder string, since int64) (all []SenderTurn, err error) {
	err = r.each(ctx, func(row scanner) (more bool, err error) {
		var t SenderTurn
		var counts bool
		if err := row(&t.Sender, &t.Turn, &t.At, &counts); err != nil || t.At <= since {
			return false, err
		}
		if counts && t.Turn != 0 {
			all = append(all, t)
		}
		return true, nil
	}, queryRecentTurns, folder)
	slices.Reverse(all)
	return all, err
}

// PaidTurns returns how many turns of a folder a sender has caused since a time, in unix ms, and when the first of the
// last rate ones was decided, 0 if there are fewer.
func (r Reader) PaidTurns(ctx context.Context, folder, payer string, since int64, rate int) (n int, first int64,
	err error) {
	all, err := r.RecentTurns(ctx, folder, since)
	last := map[int64]int64{} // the last row of each turn counts
	for _, t := range all {
		if t.Sender == payer {
			last[t.Turn] = t.At
		}
	}
	if at := slices.Sorted(maps.Values(last)); rate > 0 && len(at) >= rate {
		first = at[len(at)-rate]
	}
	return len(last), first, err
}

// LastRateLimit is when a message of a sender was last dropped for the rate of a group,
// in unix ms, 0 for never. Only the chat's last 1,000 rows are considered.
func (r Reader) LastRateLimit(ctx context.Context, chatJID, sender string) (int64, error) {
	return value[int64](ctx, r, queryLastRateLimit, chatJID, sender)
}

// CommandsOf returns when a sender's commands and pins of a chat arrived that were answered, and when the last one did
// that was dropped since there were too many, in unix ms, 0 for never. Only the chat's last 1,000 rows are considered.
func (r Reader) CommandsOf(ctx context.Context, chatJID, sender string) (answered []int64, dropped int64, err error) {
	err = r.each(ctx, func(row scanner) (more bool, err error) {
		var at int64
		var tooMany bool
		if err := row(&at, &tooMany); err != nil {
			return false, err
		}
		if tooMany {
			dropped = max(dropped, at)
		} else {
			answered = append(answered, at)
		}
		return true, nil
	}, queryCommandsOf, chatJID, sender)
	return answered, dropped, err
}
