package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// backlog stores queued turns of one conversation without rows of their own.
func backlog(t testing.TB, s *store.Store, n int, set string) {
	t.Helper()
	trigger := inbound(t, s, chat, "hello").ID
	write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO turns (kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at)
			SELECT 'conversation', 'acme', ?, `+set+`, ?, 'x', 1, 'queued', 1 FROM n`, n, chat, trigger)
	})
}

func TestNextQueued(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	topic := func(name string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Topic = name } }
	next := func(after, now int64) (id, through, until int64) {
		t.Helper()
		found := must(s.NextQueued(t.Context(), folder, after, now))(t)
		if found.Turn != nil {
			id = found.Turn.ID
		}
		return id, found.Through, found.Until
	}
	want := func(what string, after, now, id, through, until int64) {
		t.Helper()
		if i, th, u := next(after, now); i != id || th != through || u != until {
			t.Errorf("%s: turn %d, through %d until %d; want %d, %d, %d", what, i, th, u, id, through, until)
		}
	}
	want("nothing", 0, 100, 0, 0, 0)
	first, second := queued(t, s), queued(t, s)
	other := queued(t, s, topic("#x"))
	want("the oldest", 0, 100, first.ID, 0, 0)
	write(t, s, func(tx *store.Tx) error {
		return tx.RequeueTurn(first.ID, store.Requeue{Attempt: true, WaitsFor: msg.WaitsRetry, NotBefore: 500})
	})
	want("another conversation", 0, 100, other.ID, second.ID, 500)
	begun(t, s, other)
	want("all wait", 0, 100, 0, second.ID, 500)
	want("nothing new", second.ID, 100, 0, second.ID, 0)
	want("its time has come", 0, 500, first.ID, 0, 0)
	want("the clock was set back by more than any wait", 0, 500-store.MaxWait-1, first.ID, 0, 0)
	want("it was stored while the caller looked", 0, 99, 0, second.ID, 500)
	want("the clock was set back to before it was stored", 0, 100-60_001, first.ID, 0, 0)
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(first.ID, msg.ReasonCancelled, 100) })
	want("the next of the conversation", 0, 100, second.ID, 0, 0)
	write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO stops (chat_jid, before_message, through_turn, created_at) VALUES (?, 1, ?, 1)`, chat, second.ID)
	})
	want("it is about to be stopped", 0, 100, 0, second.ID, 0)
}

func TestNextQueued_ClockSetBackToBeforeItsStart_StartsAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := queued(t, s)
	run := begun(t, s, turn) // at 200
	write(t, s, func(tx *store.Tx) error {
		return tx.RequeueTurn(turn.ID, store.Requeue{Attempt: true, WaitsFor: msg.WaitsRetry, NotBefore: 500})
	})
	write(t, s, func(tx *store.Tx) error { return tx.EndRun(run.ID, "broke", 210) })
	for now, starts := range map[int64]bool{200 - 60_001: true, 200 - 60_000: false, 199: false, 499: false, 500: true} {
		found := must(s.NextQueued(t.Context(), folder, 0, now))(t)
		if got := found.Turn != nil; got != starts {
			t.Errorf("at %d: it starts: %t", now, got)
		}
		again := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, ThreadID: turn.ThreadID, Runtime: "process", StartedAt: now}
		err := s.Write(t.Context(), func(tx *store.Tx) error { return errors.Join(tx.StartRun(again, turn.ID), errUndo) })
		if stale := errors.Is(err, store.ErrStale); stale == starts {
			t.Errorf("at %d: %v", now, err)
		}
	}
}

var errUndo = errors.New("undo")

func TestNextQueued_LongBacklog_IsLookedAtInPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	backlog(t, s, 2500, `''`)
	write(t, s, func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET not_before = 500 WHERE id = 1`) })
	if next := must(s.NextQueued(t.Context(), folder, 0, 100))(t); next.Turn != nil || next.Through != 2500 || next.Until != 500 {
		t.Errorf("%+v", next)
	}
	backlog(t, s, 1, `'#x'`)
	if next := must(s.NextQueued(t.Context(), folder, 2500, 100))(t); next.Turn == nil || next.Turn.ID != 2501 {
		t.Errorf("%+v", next)
	}
}

// TestQueuedLanes_AreThoseOfTheCode holds the generated column to msg.Address.Lane.
func TestQueuedLanes_AreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var want []string
	for _, turn := range []msg.Turn{
		{Kind: msg.Conversation, Folder: "acme/eng", ChatJID: "telegram:1", Topic: "#x"},
		{Kind: msg.Conversation, Folder: "acme", ChatJID: "web:acme", Topic: "#x"},
		{Kind: msg.Conversation, Folder: "acme", ChatJID: "web:acme"},
		{Kind: msg.Delegated, Folder: "acme", ChatJID: "web:acme", Topic: "#d1"},
		{Kind: msg.Broadcast, Folder: "other", ChatJID: "website:1"},
	} {
		stored := queued(t, s, func(t *msg.Turn) {
			t.Kind, t.Folder, t.ChatJID, t.Topic = turn.Kind, turn.Folder, turn.ChatJID, turn.Topic
		})
		if got := get[string](t, s, `SELECT lane FROM turns WHERE id = ?`, stored.ID); got != turn.Lane() {
			t.Errorf("turn %+v is in lane %q, the code says %q", turn, got, turn.Lane())
		}
		want = append(want, turn.Lane())
	}
	queued(t, s, func(t *msg.Turn) { t.Folder = "other" }) // a second one of its lane
	if got := must(s.QueuedLanes(t.Context()))(t); !slices.Equal(got, want) {
		t.Errorf("lanes %q, want %q", got, want)
	}
	if n := must(s.CountQueued(t.Context()))(t); n != 6 {
		t.Errorf("%d queued", n)
	}
}

func TestFilesReady(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	photo := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, PendingFiles: 1})
	waiting := queued(t, s, func(turn *msg.Turn) {
		turn.TriggerMessageID, turn.WaitsFor, turn.NotBefore = photo.ID, msg.WaitsFiles, 60_000
	})
	queued(t, s)
	if got := must(s.FilesReady(t.Context()))(t); len(got) != 0 {
		t.Errorf("ready: %v", got)
	}
	write(t, s, func(tx *store.Tx) error { return tx.PutFiles(photo.ID, nil) })
	if got := must(s.FilesReady(t.Context()))(t); len(got) != 1 || got[waiting.ID] != folder {
		t.Errorf("ready: %v", got)
	}
	write(t, s, func(tx *store.Tx) error { return tx.EndWait(waiting.ID, msg.WaitsFiles) })
	if got := turn(t, s, waiting.ID); got.WaitsFor != "" || got.NotBefore != 0 {
		t.Errorf("turn %+v", got)
	}
}

func TestStopChat_ManyRowsAndTurns_GoesInPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	thread := "7"
	running := queued(t, s, func(turn *msg.Turn) { turn.Topic, turn.ThreadID = "#run", thread })
	run := begun(t, s, running)
	backlog(t, s, 1200, `''`)
	write(t, s, func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET thread_id = ?`, thread) })
	var kept []int64 // one on each page
	write(t, s, func(tx *store.Tx) error {
		for i := range 1300 {
			m := &msg.Message{ChatJID: chat, Direction: msg.In, Topic: fmt.Sprintf("#%d", i), ThreadID: thread}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			if i%500 == 0 {
				kept = append(kept, m.ID)
			}
		}
		return nil
	})
	command := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Content: "/stop", ThreadID: thread}).ID
	var cancelled []*msg.Turn
	var more bool
	write(t, s, func(tx *store.Tx) (err error) {
		cancelled, more, err = tx.StopChat(store.Stop{ChatJID: chat, Thread: &thread, BeforeMessage: command, Except: kept}, 500)
		return err
	})
	// The running turn, and a page of 500 or what 50 ms suffice for.
	if !more || len(cancelled) < 2 || len(cancelled) > 501 || cancelled[0].ID != running.ID {
		t.Fatalf("%d turns, more %t", len(cancelled), more)
	}
	if got := piped(t, s, run); got.State != msg.TurnQueued {
		t.Errorf("the stopped run took turn %+v", got)
	}
	later := queued(t, s, func(turn *msg.Turn) { turn.ThreadID = thread })
	if next := must(s.NextQueued(t.Context(), folder, 0, 100))(t); next.Turn != nil && next.Turn.ID < 1202 {
		t.Errorf("turn %d may start during the stop", next.Turn.ID)
	}
	stops := must(s.StopsOf(t.Context(), chat))(t)
	if len(stops) != 1 || !stops[0].CoversRow(&msg.Message{ID: 1, ThreadID: thread}, "") ||
		stops[0].CoversRow(&msg.Message{ID: 1}, "") || stops[0].CoversRow(&msg.Message{ID: command, ThreadID: thread}, "") {
		t.Fatalf("stops %+v", stops)
	}
	pages := 0
	for ; len(stops) > 0; stops = must(s.Stops(t.Context()))(t) {
		pages++
		write(t, s, func(tx *store.Tx) error { _, _, err := tx.ContinueStop(stops[0], 600); return err })
	}
	if pages < 2 {
		t.Errorf("%d more pages", pages)
	}
	if got := turn(t, s, later.ID); got.State != msg.TurnQueued {
		t.Errorf("a turn written after the stop is %s", got.State)
	}
	if n := get[int](t, s, `SELECT count(*) FROM turns WHERE state = 'cancelled'`); n != 1201 {
		t.Errorf("%d turns are cancelled", n)
	}
	if n := get[int](t, s, `SELECT count(*) FROM messages WHERE reason = 'stopped' AND topic <> '' AND thread_id = '7'`); n != 1300-len(kept) {
		t.Errorf("%d rows are dropped, with topic and thread kept", n)
	}
	for _, id := range kept {
		if m := must(s.Message(t.Context(), id))(t); m.Disposition != "" {
			t.Errorf("row %d, which another service decides, is %s", id, m.Disposition)
		}
	}
}

func TestStopChat_RowsOfFormerAddressStillMove_EndsThemToo(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const n, undecided = 1200, 1100
	oldChat(t, s, n, undecided)
	running := queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.Topic = oldJID, "#run" })
	begun(t, s, running)
	write(t, s, func(tx *store.Tx) error { return tx.MoveChat(oldJID, newJID, 50) })
	command := inbound(t, s, newJID, "/stop").ID
	write(t, s, func(tx *store.Tx) error {
		_, _, err := tx.StopChat(store.Stop{ChatJID: newJID, BeforeMessage: command}, 500)
		return err
	})
	moving := true
	for stops := must(s.Stops(t.Context()))(t); len(stops) > 0; stops = must(s.Stops(t.Context()))(t) {
		if moving { // a page of the move between two of the /stop
			write(t, s, func(tx *store.Tx) (err error) { moving, err = tx.MoveSome(oldJID, 51); return err })
		}
		write(t, s, func(tx *store.Tx) error { _, _, err := tx.ContinueStop(stops[0], 600); return err })
	}
	for what, query := range map[string]string{
		"open turns":     `SELECT count(*) FROM turns WHERE state IN ('queued', 'running')`,
		"undecided rows": `SELECT count(*) FROM messages WHERE disposition IS NULL AND direction = 'in' AND content <> '/stop'`,
	} {
		if got := get[int](t, s, query); got != 0 {
			t.Errorf("%d %s", got, what)
		}
	}
}

func TestStopChat_OneSender_KeepsRowsOfOthersOnAllPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	senders := []string{"telegram:7", "telegram:8"}
	write(t, s, func(tx *store.Tx) error {
		for i := range 1200 {
			if _, _, err := tx.PutMessage(&msg.Message{ChatJID: chat, Direction: msg.In, Sender: senders[i%2]}); err != nil {
				return err
			}
		}
		return nil
	})
	turn := queued(t, s)
	more := false
	write(t, s, func(tx *store.Tx) (err error) {
		_, more, err = tx.StopChat(store.Stop{ChatJID: chat, Sender: &senders[0], BeforeMessage: 9999}, 500)
		return err
	})
	stops := must(s.Stops(t.Context()))(t)
	if !more || len(stops) != 1 || stops[0].CoversRow(&msg.Message{ID: 1, Sender: senders[1]}, "") || !stops[0].CoversRow(&msg.Message{ID: 1, Sender: senders[0]}, "") {
		t.Fatalf("more %t, stops %+v", more, stops)
	}
	for ; len(stops) > 0; stops = must(s.Stops(t.Context()))(t) {
		write(t, s, func(tx *store.Tx) error { _, _, err := tx.ContinueStop(stops[0], 600); return err })
	}
	for sender, want := range map[string]int{senders[0]: 600, senders[1]: 0} {
		if n := get[int](t, s, `SELECT count(*) FROM messages WHERE reason = 'stopped' AND sender = '`+sender+`'`); n != want {
			t.Errorf("%d rows of %s are dropped, want %d", n, sender, want)
		}
	}
	if n := get[int](t, s, fmt.Sprintf(`SELECT count(*) FROM turns WHERE state = 'cancelled' AND id = %d`, turn.ID)); n != 1 {
		t.Error("the turn of the chat is not cancelled")
	}
}

func TestStopChat_OneTopic_KeepsTheOthers(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	a := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Topic: "#a"})
	b := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Topic: "#b"})
	topic := "#a"
	write(t, s, func(tx *store.Tx) error {
		_, _, err := tx.StopChat(store.Stop{ChatJID: chat, Topic: &topic, BeforeMessage: 99}, 500)
		return err
	})
	for id, want := range map[int64]msg.Reason{a.ID: msg.ReasonStopped, b.ID: ""} {
		if got := must(s.Message(t.Context(), id))(t); got.Reason != want {
			t.Errorf("row %d: %q", id, got.Reason)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	fail := func(problem string) (alike bool) {
		t.Helper()
		write(t, s, func(tx *store.Tx) (err error) {
			alike, err = tx.CountFailure(folder, problem, 100, 900)
			return err
		})
		return alike
	}
	for i, problem := range []string{"x", "x", "y", "y"} {
		if fail(problem) {
			t.Errorf("alike after failure %d", i)
		}
	}
	if at := must(s.ProbeAt(t.Context(), folder))(t); at != 0 {
		t.Errorf("probe at %d", at)
	}
	if !fail("y") || !fail("another one of a probe") {
		t.Error("three failures in a row are not alike")
	}
	want := []store.GroupFailures{{Folder: folder, Problem: "another one of a probe", Count: 4, Since: 100, ProbeAt: 900}}
	if got := must(s.FailingGroups(t.Context()))(t); !slices.Equal(got, want) {
		t.Errorf("failing: %+v", got)
	}
	waiting := queued(t, s)
	write(t, s, func(tx *store.Tx) error {
		return tx.RequeueTurn(waiting.ID, store.Requeue{WaitsFor: msg.WaitsProbe, NotBefore: 900})
	})
	var cleared bool
	var lanes []string
	clear := func() {
		t.Helper()
		write(t, s, func(tx *store.Tx) (err error) {
			cleared, lanes, err = tx.ClearFailures(folder)
			return err
		})
	}
	clear()
	if !cleared || !slices.Equal(lanes, []string{folder}) || turn(t, s, waiting.ID).WaitsFor != "" {
		t.Errorf("cleared %t, lanes %q, turn %+v", cleared, lanes, turn(t, s, waiting.ID))
	}
	if clear(); cleared {
		t.Error("cleared twice")
	}
}
