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

// question is one question to routd about the rows of some chats. At most one is out
// at a time; while it is, rows of other chats gather for the next.
type question struct {
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

// outcome is how a question ended.
type outcome int

// How a question may end.
const (
	askedDone    outcome = iota
	askedTooMuch         // routd answers, but not this question within its time
	askedAway            // routd does not answer
)

// add adds the rows of a chat, parked ones first.
func (q *question) add(b *batch) {
	q.batches = append(q.batches, b)
	for _, rows := range [][]decide.Row{b.Probes, b.Rows} {
		for i := range rows {
			if it := rows[i].Question(&b.Chat); it != nil {
				q.items = append(q.items, *it)
			}
		}
	}
}

// slow reports whether commands no longer wait for the answer.
func (q *question) slow() bool { return time.Since(q.asked) >= q.patience }

// release gives the chats back, with what routd has answered about their rows.
func (q *question) release() {
	for _, b := range q.batches {
		if b.chat.asked == b {
			b.chat.asked = nil
		}
		b.Routd = decide.RoutdAnswers
		for _, rows := range [][]decide.Row{b.Probes, b.Rows} {
			for i := range rows {
				if a, ok := q.answers[rows[i].ID]; ok {
					rows[i].Answer, rows[i].Known = a, true
				}
			}
		}
	}
}

// questions are what routd is asked, one at a time. The gateway's goroutine owns them; another one asks.
type questions struct {
	*resolver
	out       *question      // nil for none
	answers   chan *question // the one that was out
	patience  time.Duration  // how long commands wait for an answer
	version   int64          // of the routes, when unrouted rows were last decided
	versionAt time.Time      // when routd was asked for it last
}

func newQuestions(r *resolver, patience time.Duration) *questions {
	return &questions{resolver: r, answers: make(chan *question, 1), patience: patience}
}

// busy reports whether rows that need an answer of routd have to wait.
func (q *questions) busy() bool { return q.out != nil || q.away() }

// untilSlow returns the time until commands no longer wait for the question that is out, an hour if none does.
func (q *questions) untilSlow() time.Duration {
	if q.out == nil || q.out.slow() {
		return time.Hour
	}
	return max(q.out.patience-time.Since(q.out.asked), 0)
}

// forget makes the answer to the question that is out be one for no chat.
func (q *questions) forget() {
	if q.out != nil {
		q.out.batches = nil
	}
}

// ask asks routd, if there is something to ask. The question comes back through answers.
func (q *questions) ask(ctx context.Context, next *question) {
	if len(next.items) == 0 && !next.refresh {
		return
	}
	next.asked, next.patience = time.Now(), q.patience
	for _, b := range next.batches {
		b.chat.asked = b
	}
	q.out = next
	go func() {
		next.answers, next.version, next.outcome = q.resolve(ctx, next.items)
		q.answers <- next
	}()
}
