package rows_test

import (
	"fmt"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// queuedBacklog is a number of turns that wait at worst: a day of a chat with more
// than a message a second whose agent fails.
const queuedBacklog = 100_000

// BenchmarkBacklog_StoreAndStart stores a message with its turn, looks for the next
// turn of the lane as the queue does, and starts and ends its run. The backlog is
// blocked in the same lane; the queue knows that. ratio is the time with the backlog
// to that without: it should be near 1.
func BenchmarkBacklog_StoreAndStart(b *testing.B) {
	var empty time.Duration
	for _, n := range []int{0, queuedBacklog} {
		b.Run(fmt.Sprintf("queued=%d", n), func(b *testing.B) {
			s := storetest.Open(b)
			after := blockedBacklog(b, s, n)
			i := 0
			for b.Loop() {
				i++
				storeAndStart(b, s, i, after)
			}
			each := b.Elapsed() / time.Duration(max(i, 1))
			if n == 0 {
				empty = each
			} else if empty > 0 {
				b.ReportMetric(float64(each)/float64(empty), "ratio")
			}
		})
	}
}

// blockedBacklog stores turns behind one in backoff, and returns the cursor behind
// them.
func blockedBacklog(b *testing.B, s *store.Store, n int) (after int64) {
	b.Helper()
	if n == 0 {
		return 0
	}
	backlog(b, s, n, `'#blocked'`)
	storetest.Write(b, s, func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET not_before = 3600000 WHERE id = 1`) })
	start := time.Now()
	next := storetest.Must(rows.FindQueued(b.Context(), s.Reader, storetest.Folder, 0, 1000))(b)
	if next.Turn != nil || next.Through != int64(n) {
		b.Fatalf("next %+v", next)
	}
	b.Logf("looking once at %d blocked turns: %s", n, time.Since(start))
	return next.Through
}

func storeAndStart(b *testing.B, s *store.Store, i int, after int64) {
	b.Helper()
	m := &msg.Message{ChatJID: "telegram:-2", Direction: msg.In, Content: "hello", PlatformID: fmt.Sprint("b", i)}
	t := &msg.Turn{Kind: msg.Conversation, Folder: storetest.Folder, ChatJID: m.ChatJID, Surface: "x", CreatedAt: 1000, RowCount: 1, RowBytes: 5}
	storetest.Write(b, s, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		t.TriggerMessageID = m.ID
		if _, err := rows.PutTurn(tx, t, 5); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, TurnID: t.ID}, 1000)
	})
	next := storetest.Must(rows.FindQueued(b.Context(), s.Reader, storetest.Folder, after, 1000))(b)
	if next.Turn == nil || next.Turn.ID != t.ID {
		b.Fatalf("next %+v, want turn %d", next, t.ID)
	}
	run := &msg.Run{Folder: storetest.Folder, ChatJID: t.ChatJID, Runtime: "process", StartedAt: 1000}
	storetest.Write(b, s, func(tx *store.Tx) error { return rows.StartRun(tx, run, t.ID) })
	storetest.Write(b, s, func(tx *store.Tx) error {
		if err := rows.AnswerTurn(tx, gatedtest.Answer(run, t, "ok"), 1000); err != nil {
			return err
		}
		return rows.EndRun(tx, run.ID, "", 1000)
	})
}

// BenchmarkBacklog_Stop stops a backlog, page by page. ms/page is the longest time
// that one page holds the write lock: at most 200.
func BenchmarkBacklog_Stop(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := storetest.Open(b)
		backlog(b, s, queuedBacklog, `''`)
		b.StartTimer()
		longest := time.Duration(0)
		page := func(fn func(tx *store.Tx) error) {
			start := time.Now()
			storetest.Write(b, s, fn)
			longest = max(longest, time.Since(start))
		}
		page(func(tx *store.Tx) error {
			_, _, err := rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, BeforeMessage: 1}, 1000)
			return err
		})
		for stops := storetest.Must(rows.Stops(b.Context(), s.Reader, ""))(b); len(stops) > 0; stops = storetest.Must(rows.Stops(b.Context(), s.Reader, ""))(b) {
			page(func(tx *store.Tx) error { _, _, err := rows.ContinueStop(tx, stops[0], 1000); return err })
		}
		if _, n, err := factrows.OldestTurns(b.Context(), s.Reader, msg.TurnQueued, 1); err != nil || n != 0 {
			b.Fatalf("%d turns are left", n)
		}
		b.ReportMetric(float64(longest.Milliseconds()), "ms/page")
	}
}

// BenchmarkBacklog_Lanes reads a backlog as a start does.
func BenchmarkBacklog_Lanes(b *testing.B) {
	s := storetest.Open(b)
	backlog(b, s, queuedBacklog, `''`)
	for b.Loop() {
		if lanes := storetest.Must(rows.QueuedLanes(b.Context(), s.Reader))(b); len(lanes) != 1 {
			b.Fatalf("lanes %q", lanes)
		}
		if next := storetest.Must(rows.FindQueued(b.Context(), s.Reader, storetest.Folder, 0, 1000))(b); next.Turn == nil {
			b.Fatal("no turn may start")
		}
	}
}
