package agents

import (
	"sync"

	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/msg"
)

// mailbox is what has been sent to a run and not been received by it. Sending never
// blocks.
type mailbox struct {
	ready chan struct{} // there is mail

	mu   sync.Mutex
	mail mail
}

// mail is what a run receives at once.
type mail struct {
	turns     []*msg.Turn // stored for the run
	piped     *queue.Turn // queued, to be taken
	cancelled []int64
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

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
