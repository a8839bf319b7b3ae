package gateway

import (
	"context"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/routeapi"
)

const (
	// maxAskDelay bounds the wait before routd is asked again about a row on which it
	// timed out alone.
	maxAskDelay = time.Minute
	// probeEvery is how often a routd that does not answer is asked whether it is back.
	probeEvery = 250 * time.Millisecond
)

// lookup asks routd where the rows of some chats go. At most one is out at a time; while it is, rows of other chats
// gather for the next.
type lookup struct {
	batches  []*batch
	items    []routeapi.Item
	second   bool // it has the groups and topics that rows name
	refresh  bool // it is for the version of the routes, or for whether routd is back
	asked    time.Time
	patience time.Duration // how long commands wait for the answer
	searched bool          // its chats were searched for commands, which no longer wait for it

	limit   int // how many rows the next lookup may have, by how quickly routd answered this one
	outcome outcome
	err     error // why routd does not answer
	answers map[int64]routeapi.Answer
	version int64
}

// grow doubles the size of lookups after a large one that was quick.
func (l *lookup) grow(items int, quick bool) {
	if 2*items > l.limit && quick {
		l.limit = min(2*l.limit, routeapi.MaxItems)
	}
}

// outcome is how a lookup ended.
type outcome int

// How a lookup may end.
const (
	askedDone    outcome = iota
	askedTooMuch         // routd answers, but not this one within its time
	askedAway            // routd does not answer
)

// add adds the rows of a chat, parked ones first.
func (l *lookup) add(b *batch) {
	l.batches = append(l.batches, b)
	for _, rows := range [][]decide.Row{b.Samples, b.Rows} {
		for i := range rows {
			if it := rows[i].Lookup(&b.Chat); it != nil {
				l.items = append(l.items, *it)
			}
		}
	}
}

// slow reports whether commands no longer wait for the answer.
func (l *lookup) slow() bool { return time.Since(l.asked) >= l.patience }

// release gives the chats back, with routd's answers about their rows.
func (l *lookup) release() {
	for _, b := range l.batches {
		if b.chat.asked == b {
			b.chat.asked = nil
		}
		b.Routd = decide.RoutdAnswers
		for _, rows := range [][]decide.Row{b.Samples, b.Rows} {
			for i := range rows {
				if a, ok := l.answers[rows[i].ID]; ok {
					rows[i].Answer, rows[i].Known = a, true
				}
			}
		}
	}
}

// lookups ask routd one after the other, each in a goroutine. While routd does not answer, it is asked only whether it
// is back.
type lookups struct {
	resolver
	out       *lookup       // nil for none
	answers   chan *lookup  // the one that was out
	patience  time.Duration // how long commands wait for an answer
	limit     int           // how many rows a lookup may have: as many as routd has answered in time
	awaySince time.Time     // zero while routd answers
	probeAt   time.Time     // when it is asked next whether it is back
	version   int64         // of the routes, when unrouted rows were last decided
	versionAt time.Time     // when routd was asked for it last
}

func newLookups(r resolver) *lookups {
	return &lookups{resolver: r, answers: make(chan *lookup, 1), patience: commandWait, limit: routeapi.MaxItems}
}

// away reports whether routd does not answer.
func (ls *lookups) away() bool { return !ls.awaySince.IsZero() }

// busy reports whether rows that need an answer of routd have to wait.
func (ls *lookups) busy() bool { return ls.out != nil || ls.away() }

// until returns the time until commands no longer wait for the lookup that is out, or until routd is asked whether it
// is back, an hour for neither.
func (ls *lookups) until() time.Duration {
	switch {
	case ls.out != nil && !ls.out.slow():
		return max(ls.out.patience-time.Since(ls.out.asked), 0)
	case ls.out == nil && ls.away():
		return max(time.Until(ls.probeAt), 0)
	}
	return time.Hour
}

// forget makes the lookup that is out one for no chat.
func (ls *lookups) forget() {
	if ls.out != nil {
		ls.out.batches = nil
	}
}

// ask asks routd, if there is something to ask. The lookup comes back through answers.
func (ls *lookups) ask(ctx context.Context, next *lookup) {
	if len(next.items) == 0 && !next.refresh {
		return
	}
	next.asked, next.patience, next.limit = time.Now(), ls.patience, ls.limit
	if ls.away() { // for which no command waits
		next.patience, next.searched = 0, true
	}
	for _, b := range next.batches {
		b.chat.asked = b
	}
	ls.out = next
	go func() {
		ls.resolve(ctx, next)
		ls.answers <- next
	}()
}

// probe asks a routd that does not answer whether it is back, if it is time for that.
func (ls *lookups) probe(ctx context.Context) {
	if ls.out == nil && ls.away() && ls.until() == 0 {
		ls.ask(ctx, &lookup{refresh: true})
	}
}

// end takes the lookup back that was out, and notes whether routd answers.
func (ls *lookups) end(ctx context.Context, l *lookup) {
	ls.out, ls.limit = nil, l.limit
	switch {
	case l.outcome == askedAway:
		ls.probeAt = time.Now().Add(probeEvery)
		if !ls.away() && ctx.Err() == nil {
			ls.awaySince = time.Now()
			ls.log.Error("routd is not answering; messages wait, commands still work", "url", ls.routd, "err",
				l.err)
		}
	case ls.away():
		ls.log.Info("routd is back", "url", ls.routd, "wait", time.Since(ls.awaySince).Round(time.Millisecond))
		ls.awaySince = time.Time{}
	}
}
