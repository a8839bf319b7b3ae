package storetest

import (
	"context"
	"testing"
	"time"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// MaxWait bounds every wait for an expected event, on any machine.
const MaxWait = 30 * time.Second

const (
	Folder = "acme"
	Chat   = "telegram:-1"
)

// Must returns a result that must not be an error.
func Must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Eventually waits until done returns true.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(MaxWait)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("timed out waiting for ", what)
		}
	}
}

// Receive takes one value out of a channel.
func Receive[T any](t testing.TB, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(MaxWait):
		t.Fatal("timed out waiting for ", what)
	}
	return v
}

// Write runs a write that must succeed.
func Write(t testing.TB, s *store.Store, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// Inbound stores an inbound row of a chat.
func Inbound(t testing.TB, s *store.Store, chatJID, content string) *msg.Message {
	t.Helper()
	m := &msg.Message{ChatJID: chatJID, Direction: msg.In, Content: content, Sender: "telegram:7", Timestamp: 1, ReceivedAt: 2}
	return Stored(t, s, m)
}

// Put stores a row in a write of its own.
func Put(ctx context.Context, s *store.Store, m *msg.Message) (id int64, fresh bool, err error) {
	err = s.Write(ctx, func(tx *store.Tx) (err error) {
		id, fresh, err = tx.PutMessage(m)
		return err
	})
	return id, fresh, err
}

// Stored stores any row, which must be new.
func Stored(t testing.TB, s *store.Store, m *msg.Message) *msg.Message {
	t.Helper()
	if _, fresh, err := Put(t.Context(), s, m); err != nil || !fresh {
		t.Fatalf("put %+v: fresh %v, %v", m, fresh, err)
	}
	return m
}

// Decide gives a row a disposition.
func Decide(t testing.TB, s *store.Store, id int64, d store.Decision) {
	t.Helper()
	Write(t, s, func(tx *store.Tx) error { return tx.Decide(id, d, 10) })
}

// Turn reads a turn back.
func Turn(t testing.TB, s *store.Store, id int64) *msg.Turn {
	t.Helper()
	got := Must(s.Turn(t.Context(), id))(t)
	if got == nil {
		t.Fatalf("no turn %d", id)
	}
	return got
}

// Value reads one value with a query of the test's own.
func Value[T any](t testing.TB, s *store.Store, query string, args ...any) (v T) {
	t.Helper()
	if _, err := s.Get(t.Context(), []any{&v}, query, args...); err != nil {
		t.Fatal(err)
	}
	return v
}

// PutRequest stores a pending request of a chat, as onbod does.
func PutRequest(tx *store.Tx, r *factrows.Request) error {
	return tx.Exec(`INSERT INTO onboarding_requests (code, chat_jid, kind, sender, sender_name, title, sample, thread_id, state, created_at)
		VALUES (?,?,?,?,?,?,?,?,'pending',?)`, r.Code, r.ChatJID, r.Kind, r.Sender, r.SenderName, r.Title, r.Sample, r.ThreadID, r.CreatedAt)
}

// SetConfig replaces the configuration of a group, as routd does.
func SetConfig(tx *store.Tx, folder string, config []byte) error {
	return tx.Exec(`UPDATE registered_groups SET config = ? WHERE folder = ?`, string(config), folder)
}
