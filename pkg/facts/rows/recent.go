package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Refused counts the rows among the newest 10,000, stored since the time, in unix ms, that were dropped for a reason.
func Refused(ctx context.Context, r store.Reader, reason msg.Reason, since int64) (int, error) {
	return store.Value[int](ctx, r, `SELECT count(*) FROM messages NOT INDEXED WHERE id > (SELECT max(id) FROM messages) - ?
		AND reason = ? AND received_at >= ?`, maxRecent, string(reason), since)
}

// maxRecent is how many of the newest rows Refused, Undelivered and Arrivals read.
const maxRecent = 10_000

// UndeliveredRow is an outbound row that failed, or may have arrived.
type UndeliveredRow struct {
	ID         int64
	ChatJID    string
	State      msg.OutState
	ErrorClass string
	Error      string
}

// Undelivered returns the rows among the newest 10,000, stored since the time, in
// unix ms, whose delivery failed or is ambiguous; newest first.
func Undelivered(ctx context.Context, r store.Reader, since int64) ([]UndeliveredRow, error) {
	return store.All(ctx, r, func(scan store.Scan) (u UndeliveredRow, err error) {
		err = scan(&u.ID, &u.ChatJID, &u.State, &u.ErrorClass, &u.Error)
		return u, err
	}, `SELECT m.id, m.chat_jid, m.out_state, ifnull(d.error_class,''), ifnull(d.error,'') FROM messages m
		LEFT JOIN deliveries d ON d.message_id = m.id AND d.state = m.out_state
		AND d.part = (SELECT min(part) FROM deliveries f WHERE f.message_id = m.id AND f.state = m.out_state)
		WHERE m.id > (SELECT max(id) FROM messages) - ?2 AND m.out_state||'' IN ('failed', 'ambiguous') AND m.received_at >= ?1 AND m.source <> 'waiting' ORDER BY m.id DESC`,
		since, maxRecent)
}

// Times has the arrivals of the newest rows that tell something about the clock, in unix ms. The
// rows' ids are 0 if there is none.
type Times struct {
	Last     int64 // the latest time
	LastID   int64
	Step     int64 // by how much the time went back from one row to the next, at most
	SteppedA int64 // the rows before and after that
	SteppedB int64
	StepAt   int64 // when the row after it arrived
}

// Arrivals reads when the newest rows arrived, at most 10,000. Inserts of other
// programs may set any time.
func Arrivals(ctx context.Context, r store.Reader) (a Times, err error) {
	var lastID, last int64
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var id, at int64
		if err := scan(&id, &at); err != nil {
			return false, err
		}
		if at > a.Last {
			a.Last, a.LastID = at, id
		}
		if step := last - at; lastID != 0 && step > a.Step {
			a.Step, a.SteppedA, a.SteppedB, a.StepAt = step, lastID, id, at
		}
		lastID, last = id, at
		return true, nil
	}, `SELECT id, received_at FROM messages NOT INDEXED WHERE id > (SELECT max(id) FROM messages) - ? ORDER BY id`,
		maxRecent)
	return a, err
}

// FirstArrival is when the oldest row arrived, in unix ms, 0 if there is none.
func FirstArrival(ctx context.Context, r store.Reader) (int64, error) {
	return store.Value[int64](ctx, r,
		`SELECT ifnull((SELECT received_at FROM messages WHERE id = (SELECT min(id) FROM messages)), 0)`)
}
