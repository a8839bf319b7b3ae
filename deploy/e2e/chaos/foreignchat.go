package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/foreign"
	"arizuko/pkg/msg"
)

// foreignChat is a platform with a third-party adapter, which is never killed.
type foreignChat struct{ adapter *foreign.Adapter }

// perform performs an action and returns when it is stored: this platform does not redeliver events.
func (f *foreignChat) perform(ctx context.Context, random *rand.Rand, a chatsim.Action) (id string, err error) {
	m := msg.Message{
		ChatJID: a.Chat, PlatformID: fmt.Sprint(random.Int64()), Sender: "matrix:7", Verb: a.Verb,
		Content: a.Text, Topic: a.Topic, ThreadID: a.Thread, TargetID: a.Target,
	}
	return m.PlatformID, retryWhileBusy(ctx, func() error {
		_, err := f.adapter.Receive(ctx, m)
		return err
	})
}

// retryWhileBusy calls fn until it no longer fails with SQLITE_BUSY. A client that does not take the
// daemons' write lock can find the database locked for as long as they have much to write.
func retryWhileBusy(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		var busy sqlite3.Error
		if !errors.As(err, &busy) || busy.Code != sqlite3.ErrBusy || ctx.Err() != nil {
			return err
		}
	}
}

// deliver marks queued rows as sent until ctx ends. It stops at the first error and passes it to
// failed.
func (f *foreignChat) deliver(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}

		queued, err := f.adapter.Queued(ctx, "matrix")
		for _, m := range queued {
			if err == nil {
				err = retryWhileBusy(ctx, func() error {
					return f.adapter.Sent(ctx, m.ID, fmt.Sprintf("sent-%d", m.ID),
						time.Time{})
				})
			}
			if errors.Is(err, foreign.ErrNotQueued) {
				err = nil // /stop has cancelled it since
			}
		}
		if err != nil && ctx.Err() == nil {
			failed(fmt.Errorf("foreign adapter: deliver: %w", err))
			return
		}
	}
}

// firstError keeps the first error of the background goroutines.
type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
