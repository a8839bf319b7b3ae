package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxCounted is how many rows one statement reads: 20,000 take about 10 ms.
const maxCounted = 20_000

// eachPage reads the rows from an id to before another by pages.
func eachPage(ctx context.Context, r store.Reader, row func(store.Scan) error, query string, from, to int64,
	args ...any) (err error) {
	for ; err == nil && from < to; from += maxCounted {
		err = r.Each(ctx, func(scan store.Scan) (bool, error) { return true, row(scan) }, query,
			append([]any{from, min(to, from+maxCounted)}, args...)...)
	}
	return err
}

// CountMessages counts the messages that were stored since a time, in unix ms, by spans of so many ms since 1970: those
// that were received, sent, and not delivered. It calls add once or more often for a span. Of more messages than the
// limit it counts the newest, and all is false. 1,000,000 take half a second.
func CountMessages(ctx context.Context, r store.Reader, since, span, limit int64, add func(at int64, counts [3]int)) (
	all bool, err error) {
	from, to, err := idsBetween(ctx, r, since, 0)
	if err != nil {
		return false, err
	}
	return to-from <= limit, eachPage(ctx, r, func(scan store.Scan) error {
		var at int64
		var counts [3]int
		err := scan(&at, &counts[0], &counts[1], &counts[2])
		add(at*span, counts)
		return err
	}, queryMessageCounts, max(from, to-limit), to, span)
}

// TurnTimes are the times of a turn, in unix ms, 0 for not yet.
type TurnTimes struct {
	Made, Asked, Started, Ended int64 // Asked is when its message was stored
	State                       msg.TurnState
	Attempts                    int // that failed; Started is of the last one
}

// EachTurn calls do for each turn that was made since a time, in unix ms. 100,000 take half a second.
func EachTurn(ctx context.Context, r store.Reader, since int64, do func(TurnTimes)) error {
	from, to, err := TurnsBetween(ctx, r, since, 0)
	if err != nil {
		return err
	}
	return eachPage(ctx, r, func(scan store.Scan) error {
		var t TurnTimes
		err := scan(&t.Made, &t.Asked, &t.Started, &t.Ended, &t.State, &t.Attempts)
		do(t)
		return err
	}, queryTurnTimes, from, to)
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
