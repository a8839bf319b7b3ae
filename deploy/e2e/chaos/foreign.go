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

// foreignChat is a platform whose adapter is somebody else's, and stays alive.
type foreignChat struct{ adapter *foreign.Adapter }

// do has somebody do something, and returns when it is stored: this adapter has nobody to ask
// again.
func (f *foreignChat) do(ctx context.Context, random *rand.Rand, a chatsim.Action) (id string, err error) {
	m := msg.Message{
		ChatJID: a.Chat, PlatformID: fmt.Sprint(random.Int64()), Sender: "matrix:7", Verb: a.Verb,
		Content: a.Text, Topic: a.Topic, ThreadID: a.Thread, TargetID: a.Target,
	}
	return m.PlatformID, insist(ctx, func() error {
		_, err := f.adapter.Receive(ctx, m)
		return err
	})
}

// insist does something until the database takes it: who does not queue up for its lock as the
// daemons do may find it taken for as long as they have much to write.
func insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		var busy sqlite3.Error
		if !errors.As(err, &busy) || busy.Code != sqlite3.ErrBusy || ctx.Err() != nil {
			return err
		}
	}
}

// deliver reports what is to be sent as sent, until ctx ends.
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
				err = insist(ctx, func() error { return f.adapter.Sent(ctx, m.ID, fmt.Sprintf("sent-%d", m.ID), time.Time{}) })
			}
		}
		if err != nil && ctx.Err() == nil {
			failed(fmt.Errorf("deliver to the foreign adapter's people: %w", err))
			return
		}
	}
}

// failure keeps the first error of what works in the background.
type failure struct {
	mu  sync.Mutex
	err error
}

func (f *failure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *failure) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
