package fakeserver

import (
	"context"
	"slices"
	"sync"
)

// Notifier wakes goroutines that wait for a change. The zero value is ready.
type Notifier struct {
	mu      sync.Mutex
	changed chan struct{} // closed and dropped at each change; nil without waiters
}

// Changed returns a channel that is closed at the next change.
func (n *Notifier) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

// Notify wakes the waiting goroutines. It may be called while the fake's own lock is held.
func (n *Notifier) Notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// Until waits for a condition, which is checked at each change. The error is that of ctx.
func (n *Notifier) Until(ctx context.Context, condition func() bool) error {
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

// Record is the list of calls. C is a call of one platform.
type Record[C any] struct {
	Notifier
	acts func(*C) bool

	mu    sync.Mutex
	calls []C
}

// NewRecord returns an empty record. acts reports whether a call was carried out and did more than read.
func NewRecord[C any](acts func(*C) bool) *Record[C] { return &Record[C]{acts: acts} }

// Add adds a call, and returns its index.
func (r *Record[C]) Add(call C) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	r.Notify()
	return len(r.calls) - 1
}

// Update changes the call at an index.
func (r *Record[C]) Update(i int, change func(*C)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.calls[i])
	r.Notify()
}

// Calls are all calls, refused ones too, oldest first.
func (r *Record[C]) Calls() []C {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Sent are the calls that were carried out and did more than read, oldest first.
func (r *Record[C]) Sent() []C {
	return slices.DeleteFunc(r.Calls(), func(c C) bool { return !r.acts(&c) })
}

// Wait waits for a call of [Record.Sent] that matches, and returns the first. It may have been made
// before.
func (r *Record[C]) Wait(ctx context.Context, matches func(C) bool) (found C, err error) {
	err = r.Until(ctx, func() bool {
		sent := r.Sent()
		i := slices.IndexFunc(sent, matches)
		if i >= 0 {
			found = sent[i]
		}
		return i >= 0
	})
	return found, err
}
