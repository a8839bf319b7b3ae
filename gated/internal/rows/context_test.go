package rows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// endsAfter is a context that ends after n calls of Err.
type endsAfter struct{ n int }

func (c *endsAfter) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c *endsAfter) Done() <-chan struct{} { return nil }

func (c *endsAfter) Value(any) any { return nil }

func (c *endsAfter) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

func TestReader_ContextEnded_ReturnsItsError(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for range 3 {
		storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:1", Direction: msg.In})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, read := range map[string]func(context.Context) (any, error){
		"one row": func(ctx context.Context) (any, error) { return s.Chat(ctx, "telegram:1") },
		"rows":    func(ctx context.Context) (any, error) { return storetest.OpenTurns(ctx, s.Reader) },
		"a page":  func(ctx context.Context) (any, error) { return rows.Undecided(ctx, s.Reader, "telegram:1", 0, 10) },
		"before the second row": func(context.Context) (any, error) {
			return rows.Undecided(&endsAfter{2}, s.Reader, "telegram:1", 0, 10)
		},
	} {
		if got, err := read(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if rows := storetest.Must(rows.Undecided(t.Context(), s.Reader, "telegram:1", 0, 10))(t); len(rows) != 3 {
		t.Errorf("%d rows after a read that was cancelled", len(rows))
	}
}

// TestTx_ContextEnded_ReadsOn: many callers share a transaction.
func TestTx_ContextEnded_ReadsOn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	row := storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:1", Direction: msg.In})
	ctx, cancel := context.WithCancel(t.Context())
	var read *msg.Message
	err := s.Write(ctx, func(tx *store.Tx) (err error) {
		cancel()
		read, err = tx.Message(ctx, row.ID)
		return errors.Join(err, tx.PutCursor("gated", "key", "written"))
	})
	if err != nil || read == nil {
		t.Fatalf("%v, %v", read, err)
	}
	if got := storetest.Must(s.DaemonCursor(t.Context(), "gated", "key"))(t); got != "written" {
		t.Errorf("%q is written", got)
	}
}
