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

// ask asks routd, if there is something to ask. The answer comes through g.answers.
func (g *Gateway) ask(ctx context.Context, q *question) {
	if len(q.items) == 0 && !q.refresh {
		return
	}
	q.asked, q.patience = time.Now(), g.cfg.CommandWait
	for _, b := range q.batches {
		b.chat.asked = b
	}
	g.asking = q
	go func() {
		q.answers, q.version, q.outcome = g.routd.resolve(ctx, q.items)
		g.answers <- q
	}()
}
