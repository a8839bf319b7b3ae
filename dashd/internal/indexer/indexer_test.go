package indexer

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/dashd/internal/rows"
	"arizuko/gated/gatedtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// put stores rows and returns the id of the last one.
func put(t *testing.T, st *store.Store, n int) (last int64) {
	t.Helper()
	err := st.Write(t.Context(), func(tx *store.Tx) (err error) {
		for i := range n {
			m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Content: fmt.Sprint("word number", i), Timestamp: 1, ReceivedAt: 1}
			if last, _, err = tx.PutMessage(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// TestRun_RowsAndDeletions_AreFollowed has more rows than a batch, then one more, then one that retention deletes.
func TestRun_RowsAndDeletions_AreFollowed(t *testing.T) {
	st := storetest.Open(t)
	put(t, st, 450)
	ctx, cancel := context.WithCancel(t.Context())
	x := &Indexer{Store: st, Log: slog.New(slog.DiscardHandler)}
	done := make(chan error)
	go func() { done <- x.Run(ctx) }()
	expect := func(word string, want int) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; {
			page, err := rows.ListMessages(t.Context(), st.Reader, rows.MessageFilter{Match: store.SearchQuery(word), Limit: 1000})
			lag, lagErr := rows.CountSearchLag(t.Context(), st.Reader, 1000)
			if err != nil || lagErr != nil {
				t.Fatal(err, lagErr)
			}
			if len(page.Rows) == want && lag == (rows.SearchLag{}) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d rows found, %d expected; %+v", len(page.Rows), want, lag)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	expect("word", 450)
	last := put(t, st, 1)
	expect("word", 451)
	err := st.Write(t.Context(), func(tx *store.Tx) error {
		return tx.Decide(last, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = st.Write(t.Context(), func(tx *store.Tx) error {
		if n, err := gatedtest.Purge(tx, gatedtest.HistoryMessages, []int64{last}, 10); err != nil || n != 1 {
			return fmt.Errorf("%d rows deleted, %w", n, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expect("word", 450)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRun_ClosedStore_Ends makes sure that an error is retried, and that the end of the context ends it.
func TestRun_ClosedStore_IsRetriedUntilTheEnd(t *testing.T) {
	st := storetest.Open(t)
	put(t, st, 1)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := (&Indexer{Store: st, Log: slog.New(slog.DiscardHandler)}).Run(ctx); err != nil || ctx.Err() == nil {
			t.Errorf("it ended before: %v", err)
		}
	})
}
