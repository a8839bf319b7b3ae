package agents

import (
	"context"

	"arizuko/gated/internal/running/queue"
)

// mailbox wakes a run, which then looks in its rows: they say which turns it has, and which were cancelled. Any
// goroutine may send, and never blocks.
type mailbox struct {
	signals [controls]chan struct{}
	piped   chan queue.Turn // queued, to be claimed
	// idle gets a channel that the run closes when it handles nothing else.
	idle chan chan struct{}
}

func newMailbox() *mailbox {
	b := &mailbox{piped: make(chan queue.Turn, 1), idle: make(chan chan struct{})}
	for i := range b.signals {
		b.signals[i] = make(chan struct{}, 1)
	}
	return b
}

// control sends a signal, once if it is sent twice.
func (b *mailbox) control(c control) { notify(b.signals[c]) }

// pipe gives the run a queued turn. The queue pipes one at a time: it waits for Took.
func (b *mailbox) pipe(t queue.Turn) {
	select {
	case b.piped <- t:
	default:
	}
}

// awaitIdle waits until the run handles nothing else. It returns the error of ctx.
func (b *mailbox) awaitIdle(ctx context.Context) error {
	handled := make(chan struct{})
	select {
	case b.idle <- handled:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-handled
	return nil
}
