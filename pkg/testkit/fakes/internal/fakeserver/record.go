package fakeserver

import (
	"context"
	"slices"
	"sync"
)

// News tells whoever waits that something happened. The zero value is ready.
type News struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, whenever something happens
}

// Changed returns a channel that is closed when anything happens.
func (n *News) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

// Happened wakes whoever waits. It may be called while the fake's own lock is held.
func (n *News) Happened() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// Until waits for a condition, which is looked at whenever something happens. The error is ctx's.
func (n *News) Until(ctx context.Context, condition func() bool) error {
	for {
		changed := n.Changed()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Record is what callers did. C is a platform's own kind of call.
type Record[C any] struct {
	News
	did, sends func(*C) bool

	mu    sync.Mutex
	calls []C
}

// NewRecord makes an empty record; did reports whether a call was carried out and changed
// something, and sends whether it is one that makes messages.
func NewRecord[C any](did, sends func(*C) bool) *Record[C] {
	return &Record[C]{did: did, sends: sends}
}

// Note adds a call, which is news.
func (r *Record[C]) Note(call C) {
	r.mu.Lock()
	r.calls = append(r.calls, call)
	r.mu.Unlock()
	r.Happened()
}

// Calls are all calls, also those that were refused, oldest first.
func (r *Record[C]) Calls() []C {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Sent is what the bot did: the calls that were carried out and changed something.
func (r *Record[C]) Sent() []C {
	return slices.DeleteFunc(r.Calls(), func(c C) bool { return !r.did(&c) })
}

// Wait waits for the first thing the bot did, or has already done, that is like this.
func (r *Record[C]) Wait(ctx context.Context, like func(C) bool) (found C, err error) {
	err = r.Until(ctx, func() bool {
		sent := r.Sent()
		i := slices.IndexFunc(sent, like)
		if i >= 0 {
			found = sent[i]
		}
		return i >= 0
	})
	return found, err
}

// WaitSent waits until the bot has made messages with n calls; it returns all of those.
func (r *Record[C]) WaitSent(ctx context.Context, n int) (sent []C, err error) {
	err = r.Until(ctx, func() bool {
		sent = slices.DeleteFunc(r.Sent(), func(c C) bool { return !r.sends(&c) })
		return len(sent) >= n
	})
	return sent, err
}
