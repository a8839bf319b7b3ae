package rows_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestBacklogs_Rows_AreCountedWithTheOldest(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ctx := t.Context()
	waits := map[string]factrows.Waits{
		"undecided": factrows.ForDecision, "parked": factrows.ForApproval, "outbox": factrows.ForDelivery, "files": factrows.ForFiles,
		"running": factrows.ForAgent,
	}
	for name, w := range waits {
		if got := storetest.Must(factrows.CountBacklog(ctx, s.Reader, w, "telegram", 10))(t); got != (factrows.Backlog{}) {
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

	got := map[string]factrows.Backlog{}
	for name, w := range waits {
		got[name] = storetest.Must(factrows.CountBacklog(ctx, s.Reader, w, "telegram", 10))(t)
	}
	if diff := cmp.Diff(map[string]factrows.Backlog{
		"undecided": {Count: 2, Oldest: 1000}, "parked": {Count: 1, Oldest: 3000},
		"outbox": {Count: 2, Oldest: 1}, "files": {Count: 1, Oldest: 3000}, "running": {},
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
	if got := storetest.Must(factrows.CountBacklog(t.Context(), s.Reader, factrows.ForDecision, "", 500))(t); got.Count != 500 {
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
	want := rows.QueueBacklog{Ready: factrows.Backlog{Count: 2, Oldest: 40}, Later: 3, Files: 1, Probe: 1}
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
	if _, n, err := factrows.OldestTurns(t.Context(), s.Reader, msg.TurnQueued, 1); err != nil || n != 6 {
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
