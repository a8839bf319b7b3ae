package agents

import (
	"context"
	"sync"

	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/msg"
)

// mailbox holds the mail of a run that it has not received yet. Any goroutine may send, and never blocks.
type mailbox struct {
	ready   chan struct{} // there is mail
	signals [controls]chan struct{}
	// idle gets a channel that the run closes when it handles nothing else.
	idle chan chan struct{}

	mu   sync.Mutex
	mail mail
}

// mail is received at once.
type mail struct {
	turns     []*msg.Turn // stored for the run
	piped     *queue.Turn // queued, to be claimed
	cancelled []int64
}

func newMailbox() *mailbox {
	b := &mailbox{ready: make(chan struct{}, 1), idle: make(chan chan struct{})}
	for i := range b.signals {
		b.signals[i] = make(chan struct{}, 1)
	}
	return b
}

// control sends a signal, once if it is sent twice.
func (b *mailbox) control(c control) { notify(b.signals[c]) }

func (b *mailbox) send(add func(*mail)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	add(&b.mail)
	notify(b.ready)
}

func (b *mailbox) put(t *msg.Turn)   { b.send(func(m *mail) { m.turns = append(m.turns, t) }) }
func (b *mailbox) pipe(t queue.Turn) { b.send(func(m *mail) { m.piped = &t }) }
func (b *mailbox) cancel(id int64)   { b.send(func(m *mail) { m.cancelled = append(m.cancelled, id) }) }

// receive empties the mailbox.
func (b *mailbox) receive() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.mail
	b.mail = mail{}
	return m
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
