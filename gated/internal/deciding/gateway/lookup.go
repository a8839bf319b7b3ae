package gateway

import (
	"context"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/routeapi"
)

// maxAskDelay bounds the wait before routd is asked again about a row on which it
// timed out alone.
const maxAskDelay = time.Minute

// lookup asks routd where the rows of some chats go. At most one is out at a time; while it is, rows of other chats
// gather for the next.
type lookup struct {
	batches  []*batch
	items    []routeapi.Item
	second   bool // it has the groups and topics that rows name
	refresh  bool // it is for the version of the routes
	asked    time.Time
	patience time.Duration // how long commands wait for the answer
	searched bool          // its chats were searched for commands, which no longer wait for it

	outcome outcome
	answers map[int64]routeapi.Answer
	version int64
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

// lookups ask routd one after the other, each in a goroutine.
type lookups struct {
	*resolver
	out       *lookup       // nil for none
	answers   chan *lookup  // the one that was out
	patience  time.Duration // how long commands wait for an answer
	version   int64         // of the routes, when unrouted rows were last decided
	versionAt time.Time     // when routd was asked for it last
}

func newLookups(r *resolver) *lookups {
	return &lookups{resolver: r, answers: make(chan *lookup, 1), patience: commandWait}
}

// busy reports whether rows that need an answer of routd have to wait.
func (ls *lookups) busy() bool { return ls.out != nil || ls.away() }

// untilSlow returns the time until commands no longer wait for the lookup that is out, an hour if none does.
func (ls *lookups) untilSlow() time.Duration {
	if ls.out == nil || ls.out.slow() {
		return time.Hour
	}
	return max(ls.out.patience-time.Since(ls.out.asked), 0)
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
	next.asked, next.patience = time.Now(), ls.patience
	for _, b := range next.batches {
		b.chat.asked = b
	}
	ls.out = next
	go func() {
		next.answers, next.version, next.outcome = ls.resolve(ctx, next.items)
		ls.answers <- next
	}()
}
