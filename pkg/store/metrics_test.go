package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		if got := must(read())(t); got != (store.Backlog{}) {
			t.Errorf("%s of an empty database: %+v", name, got)
		}
	}
	in := func(chat string, at int64) *msg.Message {
		return stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, ReceivedAt: at, PendingFiles: 1})
	}
	in("telegram:9", 1000) // the oldest is not the first of its index
	in("telegram:1", 2000)
	parked := in("telegram:1", 3000)
	write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET disposition = 'onboarding', reason = 'x', decided_at = 1, decision_seq = 1 WHERE id = ?`, parked.ID)
	})
	write(t, s, func(tx *store.Tx) error { return tx.WantFiles(parked.ID) })
	for at, state := range []msg.OutState{msg.OutSent, msg.OutQueued, msg.OutSending} {
		stored(t, s, &msg.Message{ChatJID: "telegram:1", Direction: msg.Out, ReceivedAt: int64(at), OutState: state})
	}
	stored(t, s, &msg.Message{ChatJID: "slack:1", Direction: msg.Out, ReceivedAt: 1, OutState: msg.OutQueued})

	got := map[string]store.Backlog{
		"undecided": must(s.UndecidedBacklog(ctx, 10))(t), "parked": must(s.ParkedBacklog(ctx, 10))(t),
		"outbox": must(s.OutboxBacklog(ctx, "telegram", 10))(t), "files": must(s.FilesBacklog(ctx, "telegram", 10))(t),
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
	write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
			INSERT INTO messages (chat_jid, direction, timestamp, received_at) SELECT 'telegram:' || i, 'in', 1, 1 FROM n`)
	})
	if got := must(s.UndecidedBacklog(t.Context(), 500))(t); got.Count != 500 {
		t.Errorf("%d undecided rows counted, not 500", got.Count)
	}
	if got := must(s.QueueBacklog(t.Context(), 1, 500))(t); got.Ready.Count != 500 {
		t.Errorf("%d queued turns counted, not 500", got.Ready.Count)
	}
}

func TestQueueBacklog_Turns_AreCountedByWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	waits := func(what msg.WaitsFor, until, created int64) {
		queued(t, s, func(turn *msg.Turn) { turn.WaitsFor, turn.NotBefore, turn.CreatedAt = what, until, created })
	}
	waits(msg.WaitsFiles, 5000, 10)
	waits(msg.WaitsProbe, 5000, 20)
	waits(msg.WaitsRetry, 5000, 30)
	waits(msg.WaitsRetry, 900, 40) // its time has come
	waits("", 0, 50)
	want := store.QueueBacklog{Ready: store.Backlog{Count: 2, Oldest: 40}, Later: 3, Files: 1, Probe: 1}
	if diff := cmp.Diff(want, must(s.QueueBacklog(t.Context(), 1000, 10))(t)); diff != "" {
		t.Error(diff)
	}
}

func TestObserver_Commits_AreMeasuredWithTheEndsOfTurns(t *testing.T) {
	t.Parallel()
	var locked, committed int
	var failures []error
	var ends []string
	path := storetest.Path(t)
	s := must(store.Open(t.Context(), store.Options{Path: path, Observer: store.Observer{
		Locked: func(time.Duration) { locked++ },
		Committed: func(_ time.Duration, err error) {
			if committed++; err != nil {
				failures = append(failures, err)
			}
		},
		TurnEnded: func(state msg.TurnState, reason msg.Reason) { ends = append(ends, string(state)+"/"+string(reason)) },
	}}))(t)
	turn, kept := queued(t, s), queued(t, s)
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(turn.ID, msg.ReasonCancelled, 1) })
	undone := errors.New("undone")
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.CancelTurn(kept.ID, msg.ReasonStopped, 1), undone)
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
