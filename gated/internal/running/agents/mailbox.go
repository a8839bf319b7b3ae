package agents

import (
	"context"

	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/msg"
)

// maxStored is how many stored turns wait in a mailbox.
const maxStored = 4

// mailbox wakes a run, which then looks in its rows: they say which turns it has, and which were cancelled. A turn that
// was just stored for the run comes along. Any goroutine may send, and never blocks.
type mailbox struct {
	signals [controls]chan struct{}
	piped   chan queue.Turn // queued, to be claimed
	stored  chan *msg.Turn  // stored for the run; those for which there was no room are signalled by ctlTurns
	// idle gets a channel that the run closes when it handles nothing else.
	idle chan chan struct{}
}

func newMailbox() *mailbox {
	b := &mailbox{piped: make(chan queue.Turn, 1), stored: make(chan *msg.Turn, maxStored),
		idle: make(chan chan struct{})}
	for i := range b.signals {
		b.signals[i] = make(chan struct{}, 1)
	}
	return b
}

// control sends a signal, once if it is sent twice.
func (b *mailbox) control(c control) { notify(b.signals[c]) }

// give gives the run a turn as it was stored for it. Of many, it reads some from the rows.
func (b *mailbox) give(t *msg.Turn) {
	select {
	case b.stored <- t:
	default:
		b.control(ctlTurns)
	}
}

// forgetStored empties stored.
func (b *mailbox) forgetStored() {
	for {
		select {
		case <-b.stored:
		default:
			return
		}
	}
}

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
