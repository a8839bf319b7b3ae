package rows_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestBacklogs_Rows_AreCountedWithTheOldest(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ctx := t.Context()
	for name, read := range map[string]func() (store.Backlog, error){
		"undecided": func() (store.Backlog, error) { return s.UndecidedBacklog(ctx, 10) },
		"parked":    func() (store.Backlog, error) { return s.ParkedBacklog(ctx, 10) },
		"outbox":    func() (store.Backlog, error) { return s.OutboxBacklog(ctx, "telegram", 10) },
		"files":     func() (store.Backlog, error) { return s.FilesBacklog(ctx, "telegram", 10) },
		"running":   func() (store.Backlog, error) { return s.RunningBacklog(ctx) },
	} {
		if got := storetest.Must(read())(t); got != (store.Backlog{}) {
			t.Errorf("%s of an empty database: %+v", name, got)
		}
	}
	in := func(chat string, at int64) *msg.Message {
		return storetest.Stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, ReceivedAt: at, PendingFiles: 1})
	}
	in("telegram:9", 1000) // the oldest is not the first of its index
	in("telegram:1", 2000)
	parked := in("telegram:1", 3000)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET disposition = 'onboarding', reason = 'x', decided_at = 1, decision_seq = 1 WHERE id = ?`, parked.ID)
	})
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.WantFiles(tx, parked.ID) })
	for at, state := range []msg.OutState{msg.OutSent, msg.OutQueued, msg.OutSending} {
		storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:1", Direction: msg.Out, ReceivedAt: int64(at), OutState: state})
	}
	storetest.Stored(t, s, &msg.Message{ChatJID: "slack:1", Direction: msg.Out, ReceivedAt: 1, OutState: msg.OutQueued})

	got := map[string]store.Backlog{
		"undecided": storetest.Must(s.UndecidedBacklog(ctx, 10))(t), "parked": storetest.Must(s.ParkedBacklog(ctx, 10))(t),
		"outbox": storetest.Must(s.OutboxBacklog(ctx, "telegram", 10))(t), "files": storetest.Must(s.FilesBacklog(ctx, "telegram", 10))(t),
	}
	if diff := cmp.Diff(map[string]store.Backlog{
		"undecided": {Count: 2, Oldest: 1000}, "parked": {Count: 1, Oldest: 3000},
		"outbox": {Count: 2, Oldest: 1}, "files": {Count: 1, Oldest: 3000},
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBacklogs_ManyRows_AreCountedUpToTheLimit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	backlog(t, s, 2000, `''`)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
			INSERT INTO messages (chat_jid, direction, timestamp, received_at) SELECT 'telegram:' || i, 'in', 1, 1 FROM n`)
	})
	if got := storetest.Must(s.UndecidedBacklog(t.Context(), 500))(t); got.Count != 500 {
		t.Errorf("%d undecided rows counted, not 500", got.Count)
	}
	if got := storetest.Must(rows.CountQueue(t.Context(), s.Reader, 1, 500))(t); got.Ready.Count != 500 {
		t.Errorf("%d queued turns counted, not 500", got.Ready.Count)
	}
}

func TestQueueBacklog_Turns_AreCountedByWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	waits := func(what msg.WaitsFor, until, created int64) {
		gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.WaitsFor, turn.NotBefore, turn.CreatedAt = what, until, created })
	}
	waits(msg.WaitsFiles, 5000, 10)
	waits(msg.WaitsProbe, 5000, 20)
	waits(msg.WaitsRetry, 5000, 30)
	waits(msg.WaitsRetry, 900, 40) // its time has come
	waits("", 0, 50)
	want := rows.QueueBacklog{Ready: store.Backlog{Count: 2, Oldest: 40}, Later: 3, Files: 1, Probe: 1}
	if diff := cmp.Diff(want, storetest.Must(rows.CountQueue(t.Context(), s.Reader, 1000, 10))(t)); diff != "" {
		t.Error(diff)
	}
}

func TestObserver_Commits_AreMeasuredWithTheEndsOfTurns(t *testing.T) {
	t.Parallel()
	var locked, committed int
	var failures []error
	var ends []string
	path := storetest.Path(t)
	s := storetest.Must(store.Open(t.Context(), store.Options{Path: path, Observer: store.Observer{
		Locked: func(time.Duration) { locked++ },
		Committed: func(_ time.Duration, err error) {
			if committed++; err != nil {
				failures = append(failures, err)
			}
		},
		TurnEnded: func(state msg.TurnState, reason msg.Reason) { ends = append(ends, string(state)+"/"+string(reason)) },
	}}))(t)
	turn, kept := gatedtest.Queued(t, s), gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, 1) })
	undone := errors.New("undone")
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		return errors.Join(rows.CancelTurn(tx, kept.ID, msg.ReasonStopped, 1), undone)
	})
	if !errors.Is(err, undone) {
		t.Error(err)
	}
	if err := s.Close(); err != nil { // its writing goroutine has ended
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cancelled/cancelled"}, ends); diff != "" {
		t.Error(diff)
	}
	if locked == 0 || locked != committed || len(failures) != 0 {
		t.Errorf("%d locks, %d commits, failures %v", locked, committed, failures)
	}
}

// backlog stores queued turns of one conversation without rows of their own.
func backlog(t testing.TB, s *store.Store, n int, set string) {
	t.Helper()
	trigger := storetest.Inbound(t, s, storetest.Chat, "hello").ID
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO turns (kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at)
			SELECT 'conversation', 'acme', ?, `+set+`, ?, 'x', 1, 'queued', 1 FROM n`, n, storetest.Chat, trigger)
	})
}

func TestNextQueued(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	topic := func(name string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Topic = name } }
	next := func(after, now int64) (id, through, until int64) {
		t.Helper()
		found := storetest.Must(rows.FindQueued(t.Context(), s.Reader, storetest.Folder, after, now))(t)
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
	first, second := gatedtest.Queued(t, s), gatedtest.Queued(t, s)
	other := gatedtest.Queued(t, s, topic("#x"))
	want("the oldest", 0, 100, first.ID, 0, 0)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.RequeueTurn(tx, first.ID, rows.Requeue{Attempt: true, WaitsFor: msg.WaitsRetry, NotBefore: 500})
	})
	want("another conversation", 0, 100, other.ID, second.ID, 500)
	gatedtest.Begun(t, s, other)
	want("all wait", 0, 100, 0, second.ID, 500)
	want("nothing new", second.ID, 100, 0, second.ID, 0)
	want("its time has come", 0, 500, first.ID, 0, 0)
	want("the clock was set back by more than any wait", 0, 500-rows.MaxWait-1, first.ID, 0, 0)
	want("it was stored while the caller looked", 0, 99, 0, second.ID, 500)
	want("the clock was set back to before it was stored", 0, 100-60_001, first.ID, 0, 0)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, first.ID, msg.ReasonCancelled, 100) })
	want("the next of the conversation", 0, 100, second.ID, 0, 0)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO stops (chat_jid, before_message, through_turn, created_at) VALUES (?, 1, ?, 1)`, storetest.Chat, second.ID)
	})
	want("it is about to be stopped", 0, 100, 0, second.ID, 0)
}

func TestNextQueued_ClockSetBackToBeforeItsStart_StartsAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, turn) // at 200
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.RequeueTurn(tx, turn.ID, rows.Requeue{Attempt: true, WaitsFor: msg.WaitsRetry, NotBefore: 500})
	})
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndRun(tx, run.ID, "broke", 210) })
	for now, starts := range map[int64]bool{200 - 60_001: true, 200 - 60_000: false, 199: false, 499: false, 500: true} {
		found := storetest.Must(rows.FindQueued(t.Context(), s.Reader, storetest.Folder, 0, now))(t)
		if got := found.Turn != nil; got != starts {
			t.Errorf("at %d: it starts: %t", now, got)
		}
		again := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, ThreadID: turn.ThreadID, Runtime: "process", StartedAt: now}
		err := s.Write(t.Context(), func(tx *store.Tx) error { return errors.Join(rows.StartRun(tx, again, turn.ID), errUndo) })
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
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET not_before = 500 WHERE id = 1`) })
	if next := storetest.Must(rows.FindQueued(t.Context(), s.Reader, storetest.Folder, 0, 100))(t); next.Turn != nil || next.Through != 2500 || next.Until != 500 {
		t.Errorf("%+v", next)
	}
	backlog(t, s, 1, `'#x'`)
	if next := storetest.Must(rows.FindQueued(t.Context(), s.Reader, storetest.Folder, 2500, 100))(t); next.Turn == nil || next.Turn.ID != 2501 {
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
		stored := gatedtest.Queued(t, s, func(t *msg.Turn) {
			t.Kind, t.Folder, t.ChatJID, t.Topic = turn.Kind, turn.Folder, turn.ChatJID, turn.Topic
		})
		if got := storetest.Value[string](t, s, `SELECT lane FROM turns WHERE id = ?`, stored.ID); got != turn.Lane() {
			t.Errorf("turn %+v is in lane %q, the code says %q", turn, got, turn.Lane())
		}
		want = append(want, turn.Lane())
	}
	gatedtest.Queued(t, s, func(t *msg.Turn) { t.Folder = "other" }) // a second one of its lane
	if got := storetest.Must(rows.QueuedLanes(t.Context(), s.Reader))(t); !slices.Equal(got, want) {
		t.Errorf("lanes %q, want %q", got, want)
	}
	if n := storetest.Must(s.CountQueued(t.Context()))(t); n != 6 {
		t.Errorf("%d queued", n)
	}
}

func TestFilesReady(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	photo := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, PendingFiles: 1})
	waiting := gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.TriggerMessageID, turn.WaitsFor, turn.NotBefore = photo.ID, msg.WaitsFiles, 60_000
	})
	gatedtest.Queued(t, s)
	if got := storetest.Must(rows.FilesReady(t.Context(), s.Reader))(t); len(got) != 0 {
		t.Errorf("ready: %v", got)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutFiles(photo.ID, nil) })
	if got := storetest.Must(rows.FilesReady(t.Context(), s.Reader))(t); len(got) != 1 || got[waiting.ID] != storetest.Folder {
		t.Errorf("ready: %v", got)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndWait(tx, waiting.ID, msg.WaitsFiles) })
	if got := storetest.Turn(t, s, waiting.ID); got.WaitsFor != "" || got.NotBefore != 0 {
		t.Errorf("turn %+v", got)
	}
}

func TestStopChat_ManyRowsAndTurns_GoesInPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	thread := "7"
	running := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic, turn.ThreadID = "#run", thread })
	run := gatedtest.Begun(t, s, running)
	backlog(t, s, 1200, `''`)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET thread_id = ?`, thread) })
	var kept []int64 // one on each page
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range 1300 {
			m := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Topic: fmt.Sprintf("#%d", i), ThreadID: thread}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			if i%500 == 0 {
				kept = append(kept, m.ID)
			}
		}
		return nil
	})
	command := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: "/stop", ThreadID: thread}).ID
	var cancelled []*msg.Turn
	var more bool
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		cancelled, more, err = rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, Thread: &thread, BeforeMessage: command, Except: kept}, 500)
		return err
	})
	// The running turn, and a page of 500 or what 50 ms suffice for.
	if !more || len(cancelled) < 2 || len(cancelled) > 501 || cancelled[0].ID != running.ID {
		t.Fatalf("%d turns, more %t", len(cancelled), more)
	}
	if got := gatedtest.Piped(t, s, run); got.State != msg.TurnQueued {
		t.Errorf("the stopped run took turn %+v", got)
	}
	later := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ThreadID = thread })
	if next := storetest.Must(rows.FindQueued(t.Context(), s.Reader, storetest.Folder, 0, 100))(t); next.Turn != nil && next.Turn.ID < 1202 {
		t.Errorf("turn %d may start during the stop", next.Turn.ID)
	}
	stops := storetest.Must(rows.Stops(t.Context(), s.Reader, storetest.Chat))(t)
	if len(stops) != 1 || !stops[0].CoversRow(&msg.Message{ID: 1, ThreadID: thread}, "") ||
		stops[0].CoversRow(&msg.Message{ID: 1}, "") || stops[0].CoversRow(&msg.Message{ID: command, ThreadID: thread}, "") {
		t.Fatalf("stops %+v", stops)
	}
	pages := 0
	for ; len(stops) > 0; stops = storetest.Must(rows.Stops(t.Context(), s.Reader, ""))(t) {
		pages++
		storetest.Write(t, s, func(tx *store.Tx) error { _, _, err := rows.ContinueStop(tx, stops[0], 600); return err })
	}
	if pages < 2 {
		t.Errorf("%d more pages", pages)
	}
	if got := storetest.Turn(t, s, later.ID); got.State != msg.TurnQueued {
		t.Errorf("a turn written after the stop is %s", got.State)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM turns WHERE state = 'cancelled'`); n != 1201 {
		t.Errorf("%d turns are cancelled", n)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM messages WHERE reason = 'stopped' AND topic <> '' AND thread_id = '7'`); n != 1300-len(kept) {
		t.Errorf("%d rows are dropped, with topic and thread kept", n)
	}
	for _, id := range kept {
		if m := storetest.Must(s.Message(t.Context(), id))(t); m.Disposition != "" {
			t.Errorf("row %d, which another service decides, is %s", id, m.Disposition)
		}
	}
}

func TestStopChat_OneSender_KeepsRowsOfOthersOnAllPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	senders := []string{"telegram:7", "telegram:8"}
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range 1200 {
			if _, _, err := tx.PutMessage(&msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: senders[i%2]}); err != nil {
				return err
			}
		}
		return nil
	})
	turn := gatedtest.Queued(t, s)
	more := false
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		_, more, err = rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, Sender: &senders[0], BeforeMessage: 9999}, 500)
		return err
	})
	stops := storetest.Must(rows.Stops(t.Context(), s.Reader, ""))(t)
	if !more || len(stops) != 1 || stops[0].CoversRow(&msg.Message{ID: 1, Sender: senders[1]}, "") || !stops[0].CoversRow(&msg.Message{ID: 1, Sender: senders[0]}, "") {
		t.Fatalf("more %t, stops %+v", more, stops)
	}
	for ; len(stops) > 0; stops = storetest.Must(rows.Stops(t.Context(), s.Reader, ""))(t) {
		storetest.Write(t, s, func(tx *store.Tx) error { _, _, err := rows.ContinueStop(tx, stops[0], 600); return err })
	}
	for sender, want := range map[string]int{senders[0]: 600, senders[1]: 0} {
		if n := storetest.Value[int](t, s, `SELECT count(*) FROM messages WHERE reason = 'stopped' AND sender = '`+sender+`'`); n != want {
			t.Errorf("%d rows of %s are dropped, want %d", n, sender, want)
		}
	}
	if n := storetest.Value[int](t, s, fmt.Sprintf(`SELECT count(*) FROM turns WHERE state = 'cancelled' AND id = %d`, turn.ID)); n != 1 {
		t.Error("the turn of the chat is not cancelled")
	}
}

func TestStopChat_OneTopic_KeepsTheOthers(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	a := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Topic: "#a"})
	b := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Topic: "#b"})
	topic := "#a"
	storetest.Write(t, s, func(tx *store.Tx) error {
		_, _, err := rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, Topic: &topic, BeforeMessage: 99}, 500)
		return err
	})
	for id, want := range map[int64]msg.Reason{a.ID: msg.ReasonStopped, b.ID: ""} {
		if got := storetest.Must(s.Message(t.Context(), id))(t); got.Reason != want {
			t.Errorf("row %d: %q", id, got.Reason)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	fail := func(problem string) (alike bool) {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			alike, err = rows.CountFailure(tx, storetest.Folder, problem, 100, 900)
			return err
		})
		return alike
	}
	for i, problem := range []string{"x", "x", "y", "y"} {
		if fail(problem) {
			t.Errorf("alike after failure %d", i)
		}
	}
	if at := storetest.Must(rows.ProbeAt(t.Context(), s.Reader, storetest.Folder))(t); at != 0 {
		t.Errorf("probe at %d", at)
	}
	if !fail("y") || !fail("another one of a probe") {
		t.Error("three failures in a row are not alike")
	}
	want := []store.GroupFailures{{Folder: storetest.Folder, Problem: "another one of a probe", Count: 4, Since: 100, ProbeAt: 900}}
	if got := storetest.Must(s.FailingGroups(t.Context()))(t); !slices.Equal(got, want) {
		t.Errorf("failing: %+v", got)
	}
	waiting := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.RequeueTurn(tx, waiting.ID, rows.Requeue{WaitsFor: msg.WaitsProbe, NotBefore: 900})
	})
	var cleared bool
	var lanes []string
	clear := func() {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			cleared, lanes, err = rows.ClearFailures(tx, storetest.Folder)
			return err
		})
	}
	clear()
	if !cleared || !slices.Equal(lanes, []string{storetest.Folder}) || storetest.Turn(t, s, waiting.ID).WaitsFor != "" {
		t.Errorf("cleared %t, lanes %q, turn %+v", cleared, lanes, storetest.Turn(t, s, waiting.ID))
	}
	if clear(); cleared {
		t.Error("cleared twice")
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	if got := storetest.Turn(t, s, first.ID); got.State != msg.TurnRunning || got.RunID != run.ID || got.StartedAt != run.StartedAt {
		t.Errorf("its turn: %+v", got)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.RecordProcess(tx, run.ID, 4321, 99, "label") })
	run.PID, run.PIDStart, run.Label = 4321, 99, "label"
	differ(t, "unended", storetest.Must(s.UnendedRuns(t.Context()))(t), []*msg.Run{run})
	if !storetest.Must(rows.RunIsLive(t.Context(), s.Reader, run.ID))(t) || storetest.Must(rows.RunIsLive(t.Context(), s.Reader, 4711))(t) {
		t.Error("the run is not live, or a run that does not exist is")
	}

	for _, now := range []int64{400, 500} { // closed once and for all
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.CloseRun(tx, run.ID, now) })
	}
	run.ClosedAt = 400
	differ(t, "closed, process running", storetest.Must(s.UnendedRuns(t.Context()))(t), []*msg.Run{run})
	if storetest.Must(rows.RunIsLive(t.Context(), s.Reader, run.ID))(t) {
		t.Error("closed and live")
	}
	for now, problem := range []string{"broke", ""} { // ended once and for all
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndRun(tx, run.ID, problem, 600+int64(now)) })
	}
	if got := storetest.Value[int64](t, s, `SELECT ended_at FROM runs WHERE id = ?`, run.ID); got != 600 {
		t.Errorf("ended at %d", got)
	}
	if got := storetest.Must(s.UnendedRuns(t.Context()))(t); len(got) != 0 {
		t.Errorf("ended: %+v", got)
	}
	want := []rows.PastSession{{StartedAt: 200, EndedAt: 600, Result: "error", Error: "broke"}}
	differ(t, "log", storetest.Must(rows.PastSessions(t.Context(), s.Reader, storetest.Folder, "", run.ID+1, 5))(t), want)
}

func TestStartRun_SecondOfATopic_IsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first, second := gatedtest.Queued(t, s), gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	start := func(turnID int64, topic string) error {
		return s.Write(t.Context(), func(tx *store.Tx) error {
			return rows.StartRun(tx, &msg.Run{Folder: storetest.Folder, Topic: topic, ChatJID: storetest.Chat, Runtime: "process", StartedAt: 300}, turnID)
		})
	}
	if err := start(second.ID, ""); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a second run of the topic: %v", err)
	}
	if err := start(first.ID, "#other"); !errors.Is(err, store.ErrStale) {
		t.Errorf("a run for a running turn: %v", err)
	}
	if err := start(second.ID, "#other"); err != nil {
		t.Errorf("a run of another topic: %v", err)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CloseRun(tx, run.ID, 400) })
	third := gatedtest.Queued(t, s)
	if err := start(third.ID, ""); err != nil {
		t.Errorf("a run after the last was closed: %v", err)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM runs`); n != 3 {
		t.Errorf("%d runs", n)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM session_log`); n != 3 {
		t.Errorf("%d log entries", n)
	}
}

func TestAnswerTurn_LateFrames_ChangeNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	mine, other := gatedtest.Queued(t, s), gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic = "#other" })
	waiting := gatedtest.Queued(t, s)
	run, otherRun := gatedtest.Begun(t, s, mine), gatedtest.Begun(t, s, other)
	cancelled, failed := gatedtest.Piped(t, s, run), gatedtest.Piped(t, s, run)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, cancelled.ID, msg.ReasonCancelled, 300) })
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, failed, msg.TurnFailed, msg.ReasonAgentError, "broke", 300)
	})
	before := storetest.Value[int](t, s, `SELECT count(*) FROM messages`)
	for name, r := range map[string]rows.Reply{
		"for a cancelled turn":    gatedtest.Answer(run, cancelled, "x"),
		"for a failed turn":       gatedtest.Answer(run, failed, "x"),
		"for another run's turn":  gatedtest.Answer(run, other, "x"),
		"of another run":          gatedtest.Answer(otherRun, mine, "x"),
		"for a queued turn":       gatedtest.Answer(run, waiting, "x"),
		"for a queued turn by 0":  gatedtest.Answer(&msg.Run{}, waiting, "x"),
		"for a turn never stored": gatedtest.Answer(run, &msg.Turn{ID: 4711}, "x"),
	} {
		r.SessionID = "forged"
		refused(t, s, name, func(tx *store.Tx) error { return rows.AnswerTurn(tx, r, 310) })
	}
	if got := storetest.Value[int](t, s, `SELECT count(*) FROM messages`); got != before {
		t.Errorf("%d rows, %d before", got, before)
	}
	if got := storetest.Value[string](t, s, `SELECT group_concat(session_id, '') FROM session_log`); got != "" {
		t.Errorf("the log has session %q", got)
	}
	if got := storetest.Must(s.Session(t.Context(), storetest.Folder, ""))(t); got != "" {
		t.Errorf("session %q", got)
	}
}

func TestAnswerTurn_ClosedRun_StoresNoSession(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	second := gatedtest.Piped(t, s, run)
	frame := gatedtest.Answer(run, first, "ok")
	frame.SessionID = "old"
	gatedtest.StoreReply(t, s, frame, 300)
	var reset int64
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		reset, err = rows.ResetSession(tx, storetest.Folder, "", 310)
		return err
	})
	if reset != run.ID {
		t.Errorf("closed run %d, want %d", reset, run.ID)
	}
	frame = gatedtest.Answer(run, second, "late")
	frame.SessionID = "old"
	gatedtest.StoreReply(t, s, frame, 320)
	if got := storetest.Turn(t, s, second.ID); got.State != msg.TurnDone || len(storetest.Replies(t, s, second.ID)) != 1 {
		t.Errorf("its turn is not answered: %+v", got)
	}
	if got := storetest.Must(s.Session(t.Context(), storetest.Folder, ""))(t); got != "" {
		t.Errorf("session %q came back", got)
	}
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		reset, err = rows.ResetSession(tx, storetest.Folder, "", 330)
		return err
	})
	if reset != 0 {
		t.Errorf("closed run %d again", reset)
	}
}

func TestAnswerTurn_Escalation_AnswersTheAskingGroup(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 100)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	from := &msg.ReturnAddress{
		Kind: msg.Escalation, TurnID: 7, RootTurnID: 7, Depth: 1, Folder: "acme/eng", ChatJID: "slack:C1", Topic: "#deploy",
		ThreadID: "171.5", Place: "171.5", ReplyTo: "171.6", Surface: "slack-channel-thread", Ceiling: 4000, Claims: true,
	}
	ask := storetest.Stored(t, s, &msg.Message{ChatJID: "group:acme", Direction: msg.In, Content: "may I?", ForwardedFrom: from})
	asked := gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.TriggerMessageID, turn.ChatJID, turn.Kind = ask.ID, "group:acme", msg.Delegated
	})
	for len(pokes) > 0 {
		<-pokes
	}
	run := gatedtest.Begun(t, s, asked)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, asked, "you may"), 300)
	if got := storetest.Replies(t, s, asked.ID); got != nil {
		t.Errorf("outbound: %+v", got)
	}
	back := *from
	back.Kind, back.TurnID = msg.Answer, asked.ID
	want := &msg.Message{
		ChatJID: "group:acme/eng", Direction: msg.In, Kind: msg.KindMessage, Sender: "agent:acme", SenderName: "acme", IsBot: true,
		Verb: msg.VerbMessage, Content: "you may", Timestamp: 300, ReceivedAt: 300,
		Source: msg.SourceDelegate, ForwardedFrom: &back,
	}
	rows := storetest.Must(rows.Undecided(t.Context(), s.Reader, "group:acme/eng", 0, 10))(t)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	rows[0].ID = 0
	differ(t, "got", rows[0], want)
	storetest.Eventually(t, "gated to be poked", func() bool { return storetest.Receive(t, "a poke", pokes) == "gated" })
}

// TestEndTurn_OfARequest: the group that asked hears that nothing was said, unless the turn has asked further, and the session of
// the request ends.
func TestEndTurn_OfARequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind          msg.ReturnKind
		text          string
		escalates     bool
		answer, noted string
		session       string
	}{
		"an escalation, answered":     {msg.Escalation, "you may", false, "you may", "", ""},
		"an escalation, silent":       {msg.Escalation, "", false, "(No answer: acme has read this and said nothing.)", "", ""},
		"an escalation, asks further": {msg.Escalation, "", true, "", "", "s1"},
		"a delegation, answered":      {msg.Delegation, "done", false, "", "", ""},
		"a delegation, silent":        {msg.Delegation, "", false, "", "acme has ended what you delegated to it (message 1) without an answer.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			row := storetest.Stored(t, s, &msg.Message{ChatJID: "group:acme", Direction: msg.In, Content: "may I?", ForwardedFrom: &msg.ReturnAddress{
				Kind: c.kind, TurnID: 7, RootTurnID: 7, Depth: 1, Folder: "acme/eng", ChatJID: "slack:C1"}})
			asked := gatedtest.Queued(t, s, func(turn *msg.Turn) {
				turn.TriggerMessageID, turn.ChatJID, turn.Kind, turn.Topic = row.ID, "group:acme", msg.Delegated, msg.DelegatedTopic(row.ID)
			})
			run := gatedtest.Begun(t, s, asked)
			if c.escalates {
				storetest.Write(t, s, func(tx *store.Tx) error { return rows.PutToolCall(tx, asked.ID, "1", "escalate", []byte(`{}`), 250) })
			}
			frame := gatedtest.Answer(run, asked, c.text)
			frame.SessionID = "s1"
			gatedtest.StoreReply(t, s, frame, 300)
			got := ""
			for _, m := range storetest.Must(rows.Undecided(t.Context(), s.Reader, "group:acme/eng", 0, 10))(t) {
				got += m.Content
			}
			noted := ""
			next := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Folder = "acme/eng" })
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClaimSystemMessages(tx, "acme/eng", next.ID) })
			for _, line := range storetest.Must(rows.TurnSystemMessages(t.Context(), s.Reader, next.ID))(t) {
				noted += line.Body
			}
			session := storetest.Must(s.Session(t.Context(), storetest.Folder, asked.Topic))(t)
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndOldRequests(tx, 1000, 1000) })
			if old := storetest.Must(s.Session(t.Context(), storetest.Folder, asked.Topic))(t); old != "" {
				t.Errorf("an old session is kept: %q", old)
			}
			if got != c.answer || noted != c.noted || session != c.session {
				t.Errorf("answer %q, noted %q, session %q; want %q, %q, %q", got, noted, session, c.answer, c.noted, c.session)
			}
		})
	}
}

func TestReplies_OutState(t *testing.T) {
	t.Parallel()
	for jid, want := range map[string]msg.OutState{
		"group:acme": msg.OutSent, "web:acme": msg.OutQueued, "telegram:1": msg.OutQueued, "irc:#go": msg.OutQueued,
	} {
		t.Run(jid, func(t *testing.T) {
			s := storetest.Open(t)
			turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = jid })
			gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, turn), turn, "hi"), 300)
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.PutNotice(tx, turn, "sorry", 310) })
			got := storetest.Replies(t, s, turn.ID)
			if len(got) != 2 || got[0].OutState != want || got[1].OutState != want {
				t.Fatalf("%+v", got)
			}
			notice := got[1]
			if notice.Source != msg.SourceNotice || notice.ReplyToID != turn.ReplyTo || notice.Content != "sorry" || !notice.IsBot {
				t.Errorf("notice: %+v", notice)
			}
		})
	}
}

func TestFinishTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	second := gatedtest.Piped(t, s, run)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, storetest.Turn(t, s, first.ID), msg.TurnDone, msg.ReasonPartial, "broke", 300)
	})
	if got := storetest.Turn(t, s, first.ID); got.State != msg.TurnDone || got.Reason != msg.ReasonPartial || got.Error != "broke" || got.EndedAt != 300 {
		t.Errorf("%+v", got)
	}
	if got := storetest.Turn(t, s, second.ID); got.State != msg.TurnRunning {
		t.Errorf("the next turn: %+v", got)
	}
	refused(t, s, "ended already", func(tx *store.Tx) error {
		return rows.FinishTurn(tx, first, msg.TurnFailed, msg.ReasonAgentError, "", 310)
	})
	waiting := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, waiting, msg.TurnFailed, msg.ReasonAgentError, "", 320)
	})
	if got := storetest.Turn(t, s, waiting.ID); got.State != msg.TurnFailed {
		t.Errorf("a turn without a run: %+v", got)
	}
}

func TestEndTurn_PokesRoutd(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 100)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) {
		if daemon == "routd" {
			pokes <- daemon
		}
	})
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	ends := []func(*store.Tx, *msg.Turn) error{
		func(tx *store.Tx, turn *msg.Turn) error {
			return rows.AnswerTurn(tx, gatedtest.Answer(run, turn, ""), 300)
		},
		func(tx *store.Tx, turn *msg.Turn) error {
			return rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, 300)
		},
		func(tx *store.Tx, turn *msg.Turn) error {
			return rows.FinishTurn(tx, turn, msg.TurnFailed, msg.ReasonAgentError, "", 300)
		},
	}
	for i, end := range ends {
		turn := first
		if i > 0 {
			turn = gatedtest.Piped(t, s, run)
		}
		storetest.Write(t, s, func(tx *store.Tx) error { return end(tx, turn) })
		storetest.Receive(t, fmt.Sprint("the poke for end ", i), pokes)
	}
}

// What groups do for a conversation belongs to it: a turn in a chat between groups, on whatever level, and a row there that is
// not decided. What they do for another thread goes on.
func TestStopChat_WorkOfOtherGroups_EndsWithTheConversation(t *testing.T) {
	t.Parallel()
	thread, topic := "7", "#a"
	for name, stop := range map[string]rows.Stop{
		"of a thread": {ChatJID: storetest.Chat, Thread: &thread}, "of a topic": {ChatJID: storetest.Chat, Topic: &topic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			// request is a row by which a group asks another one for a turn, and asked its turn in a chat between groups.
			request := func(by *msg.Turn) *msg.Message {
				return storetest.Stored(t, s, &msg.Message{ChatJID: "group:acme", Direction: msg.In, ForwardedFrom: &msg.ReturnAddress{
					Kind: msg.Escalation, TurnID: by.ID, RootTurnID: by.Root(), Folder: by.Folder, ChatJID: by.ChatJID, Topic: by.Topic, ThreadID: by.ThreadID,
				}})
			}
			asked := func(by *msg.Turn) *msg.Turn {
				row := request(by)
				return gatedtest.Queued(t, s, func(turn *msg.Turn) {
					turn.Kind, turn.Folder, turn.ChatJID, turn.Topic, turn.RootTurnID = msg.Delegated, "acme", "group:acme", msg.DelegatedTopic(row.ID), by.Root()
					turn.TriggerMessageID = row.ID
				})
			}
			var kept, ended []int64
			for _, in := range []struct {
				thread, topic string
				turns         *[]int64
			}{{"7", "#a", &ended}, {"8", "#b", &kept}} {
				root := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ThreadID, turn.Topic = in.thread, in.topic })
				gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, root), root, "I asked"), 300)
				parent := asked(root)
				above := asked(parent)
				gatedtest.Begun(t, s, above)
				*in.turns = append(*in.turns, parent.ID, above.ID)
			}
			undecided := request(storetest.Turn(t, s, ended[0]))
			storetest.Write(t, s, func(tx *store.Tx) error {
				stop.BeforeMessage = undecided.ID + 1
				_, _, err := rows.StopChat(tx, stop, 500)
				return err
			})
			for _, id := range ended {
				if got := storetest.Turn(t, s, id); got.State != msg.TurnCancelled {
					t.Errorf("turn %d for the conversation is %s", id, got.State)
				}
			}
			for _, id := range kept {
				if got := storetest.Turn(t, s, id); !got.State.IsOpen() {
					t.Errorf("turn %d for another one is %s", id, got.State)
				}
			}
			if m := storetest.Must(s.Message(t.Context(), undecided.ID))(t); m.Reason != msg.ReasonStopped {
				t.Errorf("the undecided request is %q", m.Reason)
			}
		})
	}
}

func TestTakeTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	next := gatedtest.Queued(t, s)
	take := func(id, runID int64) func(*store.Tx) error {
		return func(tx *store.Tx) error { return rows.TakeTurn(tx, id, runID, 250) }
	}
	storetest.Write(t, s, take(next.ID, run.ID))
	if got := storetest.Turn(t, s, next.ID); got.State != msg.TurnRunning || got.RunID != run.ID || got.StartedAt != 250 {
		t.Errorf("%+v", got)
	}
	refused(t, s, "taken already", take(next.ID, run.ID))
	refused(t, s, "no such turn", take(4711, run.ID))
	other := gatedtest.Queued(t, s)
	refused(t, s, "no such run", take(other.ID, 4711))
	retried := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.RequeueTurn(tx, retried.ID, rows.Requeue{Attempt: true}) })
	refused(t, s, "it is retried alone", take(retried.ID, run.ID))
	waiting := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.RequeueTurn(tx, waiting.ID, rows.Requeue{WaitsFor: msg.WaitsFiles, NotBefore: 60_000})
	})
	refused(t, s, "its files are pending", take(waiting.ID, run.ID))
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.DrainRun(tx, run.ID) })
	refused(t, s, "the run drains", take(other.ID, run.ID))
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CloseRun(tx, run.ID, 300) })
	refused(t, s, "closed run", take(other.ID, run.ID))
	differ(t, "a refusal changed the turn", storetest.Turn(t, s, other.ID), other)
}

func TestDrainIdleRun(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	drain := func() (drained bool) {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			drained, err = rows.DrainIdleRun(tx, run.ID)
			return err
		})
		return drained
	}
	if drain() {
		t.Error("a run with a turn drains")
	}
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, first, "ok"), 300)
	if !drain() {
		t.Error("an idle run does not drain")
	}
	if got := gatedtest.Piped(t, s, run); got.State != msg.TurnQueued {
		t.Errorf("a draining run took turn %+v", got)
	}
}

func TestRequeueTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	requeue := func(attempt bool) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			return rows.RequeueTurn(tx, first.ID, rows.Requeue{
				Attempt: attempt, WaitsFor: msg.WaitsRetry, NotBefore: 5000, Kind: msg.ErrorSession, Problem: "broke",
			})
		}
	}
	storetest.Write(t, s, requeue(true))
	want := *first
	want.Attempts, want.Error, want.NotBefore, want.StartedAt = 1, "broke", 5000, run.StartedAt
	want.WaitsFor, want.ErrorKind = msg.WaitsRetry, msg.ErrorSession
	differ(t, "got", storetest.Turn(t, s, first.ID), &want)
	storetest.Write(t, s, requeue(false))
	if got := storetest.Turn(t, s, first.ID); got.Attempts != 1 {
		t.Errorf("an attempt was counted: %+v", got)
	}
	refused(t, s, "a frame of the run it was taken from", func(tx *store.Tx) error {
		return rows.AnswerTurn(tx, gatedtest.Answer(run, first, "late"), 300)
	})
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, first.ID, msg.ReasonCancelled, 400) })
	refused(t, s, "an ended turn", requeue(false))
}

func TestReviveTurn(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 100)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	revive := func(id int64) func(*store.Tx) error {
		return func(tx *store.Tx) error { return rows.ReviveTurn(tx, id) }
	}
	fresh := gatedtest.Queued(t, s)
	refused(t, s, "queued", revive(fresh.ID))
	refused(t, s, "no such turn", revive(4711))

	failed := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, failed)
	refused(t, s, "running", revive(failed.ID))
	gatedtest.StoreReply(t, s, rows.Reply{RunID: run.ID, TurnID: failed.ID, Text: "part", ObservedUpto: 1}, 250)
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := rows.FinishTurn(tx, failed, msg.TurnFailed, msg.ReasonAgentError, "broke", 300); err != nil {
			return err
		}
		return rows.EndRun(tx, run.ID, "broke", 300)
	})
	backoff := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.RequeueTurn(tx, backoff.ID, rows.Requeue{Attempt: true, WaitsFor: msg.WaitsRetry, Problem: "broke", NotBefore: 5000})
	})
	cancelled := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, cancelled.ID, msg.ReasonCancelled, 300) })
	for len(pokes) > 0 {
		<-pokes
	}
	for _, want := range []*msg.Turn{failed, backoff, cancelled} {
		storetest.Write(t, s, revive(want.ID))
		got := storetest.Turn(t, s, want.ID)
		got.ObservedUpto = 0 // of no account before it is done
		differ(t, "revived", got, want)
		storetest.Eventually(t, "gated to be poked", func() bool { return storetest.Receive(t, "a poke", pokes) == "gated" })
	}

	run = gatedtest.Begun(t, s, fresh)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, fresh, "done"), 300)
	refused(t, s, "done", revive(fresh.ID))
}

func TestCancelTurn_CancelsUnsentReplies(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	for range 3 {
		gatedtest.StoreReply(t, s, rows.Reply{RunID: run.ID, TurnID: first.ID, Text: "part"}, 300)
	}
	replies := storetest.Must(s.TurnReplies(t.Context(), first.ID))(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET out_state = CASE id WHEN ? THEN 'sent' ELSE 'sending' END WHERE id IN (?, ?)`,
			replies[0].ID, replies[0].ID, replies[1].ID)
	})
	cancel := func(tx *store.Tx) error { return rows.CancelTurn(tx, first.ID, msg.ReasonCancelled, 400) }
	storetest.Write(t, s, cancel)
	want := []msg.OutState{msg.OutSent, msg.OutSending, msg.OutCancelled}
	for i, m := range storetest.Must(s.TurnReplies(t.Context(), first.ID))(t) {
		if m.OutState != want[i] {
			t.Errorf("reply %d is %s, want %s", i, m.OutState, want[i])
		}
	}
	if got := storetest.Turn(t, s, first.ID); got.State != msg.TurnCancelled || got.Reason != msg.ReasonCancelled || got.EndedAt != 400 {
		t.Errorf("%+v", got)
	}
	refused(t, s, "cancelled already", cancel)
	refused(t, s, "a frame for it", func(tx *store.Tx) error { return rows.AnswerTurn(tx, gatedtest.Answer(run, first, "late"), 500) })
	if n := len(storetest.Must(s.TurnReplies(t.Context(), first.ID))(t)); n != 3 {
		t.Errorf("%d replies", n)
	}
}

func TestStopChat_CancelsOpenTurns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inTopic := func(topic string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Topic = topic } }
	ofFolder := func(folder string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Folder = folder } }
	elsewhere := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	running := gatedtest.Queued(t, s, inTopic("#a"))
	run := gatedtest.Begun(t, s, running)
	piped := gatedtest.Piped(t, s, run)
	plain, other, guest := gatedtest.Queued(t, s), gatedtest.Queued(t, s, inTopic("#b")), gatedtest.Queued(t, s, ofFolder("else"))
	done := gatedtest.Queued(t, s, inTopic("#c"))
	gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, done), done, "ok"), 300)

	cancel := func(topic *string) (cancelled []*msg.Turn) {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			cancelled, _, err = rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, Topic: topic}, 500)
			return err
		})
		return cancelled
	}
	topic := "#a"
	got := cancel(&topic)
	if !slices.Equal(turnIDs(got), []int64{running.ID, piped.ID}) || got[0].State != msg.TurnRunning || got[0].RunID != run.ID {
		t.Errorf("of a topic: %v", turnIDs(got))
	}
	if got := turnIDs(cancel(nil)); !slices.Equal(got, []int64{plain.ID, other.ID, guest.ID}) {
		t.Errorf("of the chat: %v", got)
	}
	if got := cancel(nil); got != nil {
		t.Errorf("again: %v", turnIDs(got))
	}
	open := storetest.Must(s.OpenTurns(t.Context()))(t)
	if !slices.Equal(turnIDs(open), []int64{elsewhere.ID}) {
		t.Errorf("open: %v", turnIDs(open))
	}
	if got := storetest.Turn(t, s, done.ID); got.State != msg.TurnDone {
		t.Errorf("the done turn is %s", got.State)
	}
}

// A /stop ends the turns of its own thread. Outside of threads it also ends what its sender asked for there, and is
// answered in a thread that begins at the question.
func TestStopChat_OneThread_KeepsTheOthers(t *testing.T) {
	t.Parallel()
	const ann, bob = "slack:U1", "slack:U2"
	for name, tc := range map[string]struct {
		thread, by string
		want       []string
	}{
		"of a thread":                   {"7", bob, []string{"in 7"}},
		"of the thread of a question":   {"9", bob, []string{"ann's"}},
		"of no thread":                  {"", "slack:U3", []string{"in none"}},
		"of no thread, by ann":          {"", ann, []string{"in none", "ann's"}},
		"of no thread, by bob":          {"", bob, []string{"in none"}},
		"of a thread without questions": {"99", ann, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			names := map[int64]string{}
			put := func(name, thread, sender, post string) {
				m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: sender, PlatformID: post, ThreadID: thread})
				turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ThreadID, turn.Topic, turn.TriggerMessageID = thread, name, m.ID })
				names[turn.ID] = name
			}
			put("in none", "", bob, "1")
			put("in 7", "7", ann, "2")
			put("in 8", "8", ann, "3")
			put("ann's", "9", ann, "9")
			var got []string
			storetest.Write(t, s, func(tx *store.Tx) error {
				cancelled, _, err := rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, Thread: &tc.thread, By: tc.by}, 500)
				for _, t := range cancelled {
					got = append(got, names[t.ID])
				}
				return err
			})
			differ(t, "cancelled", got, tc.want)
		})
	}
}

func TestTurns_Filters(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	a, b := gatedtest.Queued(t, s), gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	c := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, a.ID, msg.ReasonCancelled, 1) })
	started := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.Folder = "telegram:-3", "started" })
	gatedtest.Begun(t, s, started)
	tests := []struct {
		list store.TurnList
		want []int64
	}{
		{store.TurnList{Limit: 10}, []int64{started.ID, c.ID, b.ID, a.ID}},
		{store.TurnList{Before: started.ID, Limit: 2}, []int64{c.ID, b.ID}},
		{store.TurnList{Before: b.ID, Limit: 2}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnQueued, Limit: 10}, []int64{c.ID, b.ID}},
		{store.TurnList{State: msg.TurnQueued, Before: c.ID, Limit: 10}, []int64{b.ID}},
		{store.TurnList{State: msg.TurnCancelled, Limit: 10}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnCancelled, Before: a.ID, Limit: 10}, nil},
		{store.TurnList{ChatJID: storetest.Chat, Limit: 10}, []int64{c.ID, a.ID}},
		{store.TurnList{ChatJID: storetest.Chat, Limit: 1}, []int64{c.ID}},
		{store.TurnList{ChatJID: storetest.Chat, Before: c.ID, Limit: 10}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnCancelled, ChatJID: storetest.Chat, Limit: 10}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnCancelled, ChatJID: "telegram:-2", Limit: 10}, nil},
		{store.TurnList{Folder: "started", Limit: 10}, []int64{started.ID}},
		{store.TurnList{Folder: "started", Before: started.ID, Limit: 10}, nil},
		{store.TurnList{Folder: a.Folder, Limit: 10}, nil}, // none has started
	}
	for _, tt := range tests {
		if got := turnIDs(storetest.Must(s.Turns(t.Context(), tt.list))(t)); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestLastAnsweredLastTurnAtLastHome(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := storetest.Must(s.LastHome(t.Context(), storetest.Chat))(t); got != "" {
		t.Errorf("home %q", got)
	}
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "", math.MaxInt64))(t).ObservedUpto; got != 0 {
		t.Errorf("shown up to %d", got)
	}
	done := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, done)
	frame := gatedtest.Answer(run, done, "ok")
	frame.ObservedUpto = 7
	gatedtest.StoreReply(t, s, frame, 300)
	partial := gatedtest.Piped(t, s, run)
	gatedtest.StoreReply(t, s, rows.Reply{RunID: run.ID, TurnID: partial.ID, Text: "part", ObservedUpto: 9}, 310)
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "", math.MaxInt64))(t).ObservedUpto; got != 7 {
		t.Errorf("shown up to %d while the next turn runs", got)
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, storetest.Turn(t, s, partial.ID), msg.TurnDone, msg.ReasonInterrupted, "", 320)
	})
	failing := gatedtest.Piped(t, s, run)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, failing, msg.TurnFailed, msg.ReasonAgentError, "broke", 330)
	})
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "", math.MaxInt64))(t).ObservedUpto; got != 9 {
		t.Errorf("shown up to %d, want the value of the last done turn", got)
	}
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "", partial.ID))(t); got.ObservedUpto != 7 || got.EndedAt != 300 {
		t.Errorf("before turn %d: %+v", partial.ID, got)
	}
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "#else", math.MaxInt64))(t).ObservedUpto; got != 0 {
		t.Errorf("another topic was shown up to %d", got)
	}

	waiting := gatedtest.Queued(t, s)
	for id, want := range map[int64]int64{
		done.ID: failing.StartedAt, partial.ID: failing.StartedAt, failing.ID: partial.StartedAt, waiting.ID: failing.StartedAt,
	} {
		if got := storetest.Must(rows.LastTurnAt(t.Context(), s.Reader, storetest.Folder, id))(t); got != want {
			t.Errorf("last turn other than %d began at %d, want %d", id, got, want)
		}
	}
	if got := storetest.Must(s.LastHome(t.Context(), storetest.Chat))(t); got != storetest.Folder {
		t.Errorf("home %q", got)
	}
	gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Folder = "else" })
	if got := storetest.Must(s.LastHome(t.Context(), storetest.Chat))(t); got != "else" {
		t.Errorf("home %q", got)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	put := func(run *msg.Run, text string) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			return rows.PutProgress(tx, *run, first.ID, &store.Progress{State: agentproto.StatusRunning, Text: text, UpdatedAt: 5})
		}
	}
	progress := func() *store.Progress {
		t.Helper()
		p, err := s.Progress(t.Context(), first.ID)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := progress(); p != nil {
		t.Errorf("before the first event: %+v", p)
	}
	storetest.Write(t, s, put(run, "one"))
	storetest.Write(t, s, put(run, "two"))
	want := &store.Progress{State: agentproto.StatusRunning, Text: "two", Plan: []agentproto.Step{}, Tools: []agentproto.Tool{}, UpdatedAt: 5}
	differ(t, "got", progress(), want)
	refused(t, s, "another run", put(&msg.Run{ID: run.ID + 1}, "three"))
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.RequeueTurn(tx, first.ID, rows.Requeue{}) })
	if p := progress(); p != nil {
		t.Errorf("of a turn that is queued again: %+v", p)
	}
	refused(t, s, "a turn that is queued again", put(run, "late"))
}

func TestUsage_IsAdded(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := gatedtest.Queued(t, s)
	for _, u := range []agentproto.Usage{{Input: 5, Output: 1, ContextUsed: 6, ContextSize: 100, CostUSD: 0.25}, {Input: 1, CostUSD: 0.5}, {ContextUsed: 7}} {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.AddUsage(tx, turn.ID, u, "2026-11-23") })
	}
	got, err := s.Usage(t.Context(), turn.ID)
	if want := (agentproto.Usage{Input: 6, Output: 1, ContextUsed: 7, ContextSize: 100, CostUSD: 0.75}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// The notes of changed messages become a turn of their own, unless a later message is queued: it has them in order.
func TestPutNotes_LaterTurnQueued_LeavesThemToIt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inChat := func(turn *msg.Turn) { turn.ThreadID, turn.Place = "", "" }
	first := gatedtest.Queued(t, s, inChat)
	gatedtest.Begun(t, s, first)
	running := storetest.Must(s.Turn(t.Context(), first.ID))(t)
	note := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: msg.VerbEdit, TargetID: "native-1"})
	storetest.Decide(t, s, note.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonEditNote, RoutedTo: storetest.Folder})
	later := gatedtest.Queued(t, s, inChat)
	storetest.Write(t, s, func(tx *store.Tx) error {
		notes, err := rows.PutNotes(tx, running, 300)
		if notes != nil {
			t.Errorf("notes %+v beside the queued turn %d", notes, later.ID)
		}
		return err
	})
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.TakeTurn(tx, later.ID, running.RunID, 300) })
	if m := storetest.Must(s.Message(t.Context(), note.ID))(t); m.TurnID != later.ID {
		t.Errorf("the note is of turn %d, want %d", m.TurnID, later.ID)
	}
}
