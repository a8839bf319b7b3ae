package store_test

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxWait bounds every wait for an expected event, on any machine.
const maxWait = 30 * time.Second

const (
	folder = "acme"
	chat   = "telegram:-1"
)

// must returns a result that must not be an error.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// eventually waits until done returns true.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(maxWait)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("timed out waiting for ", what)
		}
	}
}

// receive takes one value out of a channel.
func receive[T any](t testing.TB, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(maxWait):
		t.Fatal("timed out waiting for ", what)
	}
	return v
}

// write runs a write that must succeed.
func write(t testing.TB, s *store.Store, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// inbound stores an inbound row of a chat.
func inbound(t testing.TB, s *store.Store, chatJID, content string) *msg.Message {
	t.Helper()
	m := &msg.Message{ChatJID: chatJID, Direction: msg.In, Content: content, Sender: "telegram:7", Timestamp: 1, ReceivedAt: 2}
	return stored(t, s, m)
}

// stored stores any row, which must be new.
func stored(t testing.TB, s *store.Store, m *msg.Message) *msg.Message {
	t.Helper()
	if _, fresh, err := s.PutMessage(t.Context(), m); err != nil || !fresh {
		t.Fatalf("put %+v: fresh %v, %v", m, fresh, err)
	}
	return m
}

// decide gives a row a disposition.
func decide(t testing.TB, s *store.Store, id int64, d store.Decision) {
	t.Helper()
	write(t, s, func(tx *store.Tx) error { return tx.Decide(id, d, 10) })
}

// queued stores a turn for a new row, changed by set.
func queued(t testing.TB, s *store.Store, set ...func(*msg.Turn)) *msg.Turn {
	t.Helper()
	turn := &msg.Turn{
		Kind: msg.Conversation, Folder: folder, ChatJID: chat, Place: "place", ThreadID: "thread",
		ReplyTo: "native-1", Surface: "telegram-group", Ceiling: 1500, CreatedAt: 100,
	}
	for _, f := range set {
		f(turn)
	}
	if turn.TriggerMessageID == 0 {
		turn.TriggerMessageID = inbound(t, s, turn.ChatJID, "hello").ID
	}
	write(t, s, func(tx *store.Tx) error {
		waits := turn.WaitsFor
		turn.WaitsFor = cmp.Or(waits, msg.WaitsFiles) // so that no live run takes it
		if _, err := tx.PutTurn(turn, 0); err != nil {
			return err
		}
		if waits == "" {
			turn.WaitsFor = ""
			if err := tx.EndWait(turn.ID, msg.WaitsFiles); err != nil {
				return err
			}
		}
		return tx.Decide(turn.TriggerMessageID, store.Decision{
			Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: turn.Folder, TurnID: turn.ID,
		}, turn.CreatedAt)
	})
	return turn
}

// piped stores a turn for the address of a live run, which takes it, also while it works on another one.
func piped(t testing.TB, s *store.Store, run *msg.Run) *msg.Turn {
	t.Helper()
	turn := &msg.Turn{
		Kind: msg.Conversation, Folder: run.Folder, Topic: run.Topic, ChatJID: run.ChatJID, ThreadID: run.ThreadID,
		TriggerMessageID: inbound(t, s, run.ChatJID, "more").ID, CreatedAt: 110,
	}
	write(t, s, func(tx *store.Tx) error {
		if _, err := tx.PutTurn(turn, 5); err != nil || turn.RunID != 0 {
			return err
		}
		err := tx.TakeTurn(turn.ID, run.ID, turn.CreatedAt)
		if errors.Is(err, store.ErrStale) {
			return nil
		}
		taken, _ := tx.Turn(t.Context(), turn.ID)
		*turn = *taken
		return err
	})
	return turn
}

// begun starts a run for a queued turn.
func begun(t testing.TB, s *store.Store, turn *msg.Turn) *msg.Run {
	t.Helper()
	run := &msg.Run{
		Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, ThreadID: turn.ThreadID,
		Runtime: "process", StartedAt: 200,
	}
	write(t, s, func(tx *store.Tx) error { return tx.StartRun(run, turn.ID) })
	return run
}

// answer is a final frame of a run for a turn.
func answer(run *msg.Run, turn *msg.Turn, text string) store.Reply {
	return store.Reply{RunID: run.ID, TurnID: turn.ID, Text: text, Final: true, Sender: "agent:" + turn.Folder, SenderName: "Ada"}
}

// reply stores a frame.
func reply(t testing.TB, s *store.Store, r store.Reply, now int64) {
	t.Helper()
	write(t, s, func(tx *store.Tx) error { return tx.AnswerTurn(r, now) })
}

// turn reads a turn back.
func turn(t testing.TB, s *store.Store, id int64) *msg.Turn {
	t.Helper()
	got := must(s.Turn(t.Context(), id))(t)
	if got == nil {
		t.Fatalf("no turn %d", id)
	}
	return got
}

// get reads one value with a query of the test's own.
func get[T any](t testing.TB, s *store.Store, query string, args ...any) (v T) {
	t.Helper()
	if _, err := s.GetRow(t.Context(), query, args, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
