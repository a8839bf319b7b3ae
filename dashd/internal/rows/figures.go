package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// MessageCount counts the messages that were stored in a span of time.
type MessageCount struct{ In, Out, Failed int }

// maxCounted is how many rows one statement reads: 20,000 take about 10 ms.
const maxCounted = 20_000

// CountMessages counts the messages that were stored since a time, in unix ms, by spans of so many ms since 1970. Of
// more than the limit it counts the newest, and all is false. It reads page by page: 1,000,000 take half a second.
func CountMessages(ctx context.Context, r store.Reader, since, span, limit int64) (counts map[int64]MessageCount,
	all bool, err error) {
	counts = map[int64]MessageCount{}
	first, _, err := idsBetween(ctx, r, since, 0)
	if err != nil {
		return nil, false, err
	}
	last, err := r.LastMessageID(ctx)
	all = last-first < limit
	for first = max(first, last-limit+1); err == nil && first <= last; first += maxCounted {
		err = r.Each(ctx, func(scan store.Scan) (bool, error) {
			var at int64
			var n MessageCount
			err := scan(&at, &n.In, &n.Out, &n.Failed)
			sum := counts[at]
			counts[at] = MessageCount{sum.In + n.In, sum.Out + n.Out, sum.Failed + n.Failed}
			return true, err
		}, queryMessageCounts, first, first+maxCounted, span)
	}
	return counts, all, err
}

// TurnTimes are the times of a turn, in unix ms, 0 for not yet.
type TurnTimes struct {
	Made, Asked, Started, Ended int64 // Asked is when its message was stored
	State                       msg.TurnState
}

// EachTurn calls do for each turn that was made since a time, in unix ms. It reads page by page, and takes half a second
// for 100,000 turns.
func EachTurn(ctx context.Context, r store.Reader, since int64, do func(TurnTimes)) error {
	first, _, err := TurnsBetween(ctx, r, since, 0)
	if err != nil {
		return err
	}
	last, err := store.Value[int64](ctx, r, queryLastTurn)
	for ; err == nil && first <= last; first += maxCounted {
		err = r.Each(ctx, func(scan store.Scan) (bool, error) {
			var t TurnTimes
			err := scan(&t.Made, &t.Asked, &t.Started, &t.Ended, &t.State)
			if err == nil {
				do(t)
			}
			return true, err
		}, queryTurnTimes, first, first+maxCounted)
	}
	return err
}

// DaySpend is what the agents of a group, Name, spent on a day, YYYY-MM-DD.
type DaySpend struct {
	Day, Name string
	USD       float64 // US dollars
}

// DollarsSince returns the spend of each group since a day.
func DollarsSince(ctx context.Context, r store.Reader, day string) ([]DaySpend, error) {
	return store.All(ctx, r, func(scan store.Scan) (d DaySpend, err error) {
		err = scan(&d.Day, &d.Name, &d.USD)
		return d, err
	}, queryGroupDollars, day)
}
