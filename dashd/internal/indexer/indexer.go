// Package indexer keeps the full-text index of messages up to date, behind their writers.
package indexer

import (
	"context"
	"log/slog"
	"time"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/store"
)

const (
	// idleDelay is how long it waits for new rows once it has indexed all.
	idleDelay = time.Second
	// minPause and pauseFactor are the pause after a batch, so that other writers get their turn, and at most a quarter
	// of a core goes into an index that has to be made for many rows, as after an upgrade.
	minPause    = 5 * time.Millisecond
	pauseFactor = 3
	// logEvery is how often it logs how far it is while it is behind.
	logEvery = time.Minute
	// manyRows is from how many rows on it logs that the index is complete.
	manyRows = 100_000
)

// Indexer indexes messages. Its fields are set once.
type Indexer struct {
	Store *store.Store
	Log   *slog.Logger
}

// Run indexes rows until ctx ends. It may be stopped at any time: each batch is one transaction.
func (x *Indexer) Run(ctx context.Context) error {
	outage := store.NewOutage(x.Log, "search index")
	since, logged, rows := time.Now(), time.Now(), 0 // since it was idle
	for {
		began := time.Now()
		n, more, err := x.step(ctx)
		_ = outage.Note(ctx, err)
		rows += n
		pause := idleDelay
		switch {
		case err == nil && more:
			pause = max(minPause, pauseFactor*time.Since(began))
			if time.Since(logged) > logEvery {
				x.Log.Info("the search index is behind; messages put into it so far", "count", rows)
				logged = time.Now()
			}
		case err == nil:
			if rows > manyRows {
				x.Log.Info("the search index has all messages again", "count", rows, "took",
					time.Since(since).Round(time.Second))
			}
			since, logged, rows = time.Now(), time.Now(), 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (x *Indexer) step(ctx context.Context) (list int, more bool, err error) {
	lag, err := rows.CountSearchLag(ctx, x.Store.Reader, 1)
	if err != nil || lag.Rows == 0 && lag.Deleted == 0 {
		return 0, false, err // without a write
	}
	err = x.Store.Write(ctx, func(tx *store.Tx) (err error) {
		list, more, err = tx.IndexMessages()
		return err
	})
	return list, more, err
}
