package store

import (
	"context"

	"arizuko/pkg/msg"
)

// Waiting is the number of waiting rows and the oldest of them.
type Waiting struct {
	Rows    int
	Oldest  int64 // the oldest row's id, 0 if none waits
	ChatJID string
	Since   int64 // when the oldest was stored, unix ms
}

func (r Reader) waiting(ctx context.Context, query string, args ...any) (w Waiting, err error) {
	_, err = r.get(ctx, []any{&w.Rows, &w.Oldest, &w.ChatJID, &w.Since}, query, args...)
	return w, err
}

// WaitingInbound counts the undecided rows of all chats.
func (r Reader) WaitingInbound(ctx context.Context) (Waiting, error) {
	return r.waiting(ctx, queryWaitingIn)
}

// WaitingInboundBefore counts the undecided rows of a chat that arrived at the
// time before, in unix ms, or earlier.
func (r Reader) WaitingInboundBefore(ctx context.Context, chatJID string, before int64) (Waiting, error) {
	return r.waiting(ctx, queryWaitingBefore, chatJID, before)
}

// WaitingOutbound counts the undelivered rows of all chats.
func (r Reader) WaitingOutbound(ctx context.Context) (Waiting, error) {
	return r.waiting(ctx, queryWaitingOut)
}

// WaitingOutboundBefore counts the undelivered rows of a chat that were stored at the time before, in unix ms, or
// earlier.
func (r Reader) WaitingOutboundBefore(ctx context.Context, chatJID string, before int64) (Waiting, error) {
	platform, _ := msg.SplitJID(chatJID)
	return r.waiting(ctx, queryWaitingOutBefore, platform, chatJID, before)
}

const (
	// A chat, one of its threads unless that is '', one place unless that is ''.
	atPlace     = `t.chat_jid = ?1 AND (?2 = '' OR t.thread_id = ?2) AND (?3 = '' OR t.place = ?3)`
	openAtPlace = `t.state IN ('queued', 'running') AND ` + atPlace
)

// OpenTurnCount is what is known of turns that have not ended without reading
// them: a chat may have a hundred thousand.
type OpenTurnCount struct {
	Open    int // at most the limit of the question
	Running int
	Begun   int64 // when the first running one began, unix ms; 0 for none
	Oldest  int64 // id of the oldest, 0 for none
}

// CountOpenTurns counts the open turns of a chat, up to limit: those of one of its
// threads unless threadID is "", and of one place unless place is "".
func (r Reader) CountOpenTurns(ctx context.Context, chatJID, threadID, place string, limit int) (n OpenTurnCount,
	err error) {
	_, err = r.get(ctx, []any{&n.Open, &n.Running, &n.Begun, &n.Oldest}, queryCountOpen, chatJID, threadID, place,
		limit)
	return n, err
}

// RunningPlaces returns the places of a chat where turns are running, sorted.
func (r Reader) RunningPlaces(ctx context.Context, chatJID string) ([]string, error) {
	places := []string{}
	err := r.each(ctx, func(scan scanner) (bool, error) {
		var place string
		err := scan(&place)
		places = append(places, place)
		return true, err
	}, queryRunningPlaces, chatJID)
	return places, err
}

// RunningTurns returns the oldest running turns of all chats, at most limit, and
// how many there are.
func (r Reader) RunningTurns(ctx context.Context, limit int) (oldest []*msg.Turn, count int, err error) {
	oldest, err = r.queryTurns(ctx, queryRunningTurns, limit)
	if err != nil || len(oldest) < limit {
		return oldest, len(oldest), err
	}
	_, err = r.get(ctx, []any{&count}, queryRunningCount)
	return oldest, max(count, len(oldest)), err // some may have ended in between
}

// QueuedTurns returns the oldest queued turns of all chats, at most limit, and
// how many there are.
func (r Reader) QueuedTurns(ctx context.Context, limit int) (oldest []*msg.Turn, count int, err error) {
	oldest, err = r.queryTurns(ctx, queryQueuedTurns, limit)
	if err != nil || len(oldest) < limit {
		return oldest, len(oldest), err
	}
	count, err = r.CountQueued(ctx)
	return oldest, max(count, len(oldest)), err
}

// QueuedBefore counts the queued turns that are older than a turn and not in
// backoff at the time now.
func (r Reader) QueuedBefore(ctx context.Context, turnID, now int64) (int, error) {
	return value[int](ctx, r, queryQueuedBefore, turnID, now)
}

// Minute counts the rows that were stored in a minute.
type Minute struct{ In, Out int }

// maxCounted is how many rows Minutes reads: 20,000 take about 10 ms.
const maxCounted = 20_000

// Minutes counts rows by minute, from since on, in unix ms, for n minutes. Of more than 20,000 rows it counts the
// newest ones, and all is false.
func (r Reader) Minutes(ctx context.Context, since int64, n int) (minutes []Minute, all bool, err error) {
	minutes = make([]Minute, n)
	first, err := r.firstSince(ctx, since)
	if err != nil {
		return minutes, false, err
	}
	counted := 0
	_, err = collect(ctx, r, func(scan scanner) (struct{}, error) {
		var at int
		var m Minute
		err := scan(&at, &m.In, &m.Out)
		if counted += m.In + m.Out; at < n {
			minutes[at] = m
		}
		return struct{}{}, err
	}, queryMinutes, first, since, maxCounted)
	return minutes, counted < maxCounted, err
}
