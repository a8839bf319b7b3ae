package store_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// life is a message's way through the store: each step is one transaction, of the daemon that does it.
type life struct {
	s       *store.Store
	chat    string
	n       int
	message *msg.Message
	turn    *msg.Turn
	run     *msg.Run
	answer  int64
}

var lifeSteps = []string{"receive", "decide", "take", "answer", "claim", "settle"}

func (l *life) step(t testing.TB, name string) {
	t.Helper()
	storetest.Write(t, l.s, func(tx *store.Tx) (err error) {
		switch name {
		case "receive":
			l.n++
			l.message = fresh(l.n)
			l.message.ChatJID = l.chat
			_, _, err = tx.PutMessage(l.message)
		case "decide":
			l.turn = &msg.Turn{Kind: msg.Conversation, Folder: l.chat, ChatJID: l.chat, Surface: "x", CreatedAt: 1, RowCount: 1, RowBytes: 5, TriggerMessageID: l.message.ID}
			if _, err = gatedtest.PutTurn(tx, l.turn, 5); err == nil {
				err = tx.Decide(l.message.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: l.chat, TurnID: l.turn.ID}, 1)
			}
		case "take":
			if l.run == nil {
				l.run = &msg.Run{Folder: l.chat, ChatJID: l.chat, Runtime: "process", StartedAt: 1}
				return gatedtest.StartRun(tx, l.run, l.turn.ID)
			}
			if l.turn.State == msg.TurnQueued {
				err = gatedtest.TakeTurn(tx, l.turn.ID, l.run.ID, 1)
			}
		case "answer":
			err = gatedtest.AnswerTurn(tx, gatedtest.Reply{RunID: l.run.ID, TurnID: l.turn.ID, Text: "hello", SessionID: "s", Final: true}, 1)
		case "claim":
			err = tx.ClaimOutbound(l.answer, 1, 1)
		case "settle":
			if err = tx.PutDelivery(store.Delivery{MessageID: l.answer, State: msg.OutSent, PlatformID: fmt.Sprint("sent-", l.n)}, 1); err == nil {
				err = tx.SettleOutbound(l.answer, msg.OutSent, fmt.Sprint("sent-", l.n))
			}
		}
		return err
	})
	if name == "answer" {
		l.answer = storetest.Must(factrows.TurnReplies(t.Context(), l.s.Reader, l.turn.ID))(t)[0].ID
	}
}

// The round trips of each step, which a network multiplies: a statement whose result is not needed costs none.
func TestPostgres_RoundTrips_OfAMessagesLife(t *testing.T) {
	t.Parallel()
	onServer(t)
	p := proxy(t, storetest.Path(t))
	l := &life{s: storetest.OpenAt(t, p.URL(), nil), chat: "telegram:-1"}
	most := map[string]int64{"receive": 3, "decide": 3, "take": 1, "answer": 6, "claim": 2, "settle": 2}
	for i := range 3 {
		for _, step := range lifeSteps {
			before := p.Calls()
			l.step(t, step)
			calls := p.Calls() - before
			if step == "answer" {
				calls-- // the test reads it
			}
			t.Logf("%s: %d", step, calls)
			if i == 2 && calls > most[step] { // all statements are prepared
				t.Errorf("%s: %d round trips, at most %d", step, calls, most[step])
			}
		}
	}
}

// BenchmarkServer_Life is the time of a message's life with several stores, as of several processes, at a distance from the
// server; ns/op is per message.
func BenchmarkServer_Life(b *testing.B) {
	onServer(b)
	for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
		for _, stores := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("delay=%s/stores=%d", delay, stores), func(b *testing.B) {
				p := proxy(b, storetest.Path(b))
				lives := make(chan *life, stores)
				for i := range stores {
					lives <- &life{s: storetest.OpenAt(b, p.URL(), nil), chat: fmt.Sprint("telegram:-", i+1)}
				}
				warm := func(l *life) {
					for _, step := range lifeSteps {
						l.step(b, step)
					}
				}
				for range stores {
					l := <-lives
					warm(l)
					warm(l)
					lives <- l
				}
				p.Delay(delay)
				var done atomic.Int64
				b.SetParallelism(stores) // at least as many goroutines; each takes a store of its own
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						l := <-lives
						warm(l)
						lives <- l
						done.Add(1)
					}
				})
				b.StopTimer()
				p.Delay(0)
				b.ReportMetric(float64(done.Load())/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}
