package fakeserver

import (
	"slices"
	"sync"
)

// Faults is the queue of what is to go wrong. F is a platform's own fault.
type Faults[F any] struct {
	means func(f *F, call string) bool

	mu    sync.Mutex
	queue []pending[F]
}

type pending[F any] struct {
	fault F
	left  int // calls; negative is without an end
}

// NewFaults makes an empty queue; means reports whether a fault is for calls of some name.
func NewFaults[F any](means func(f *F, call string) bool) *Faults[F] {
	return &Faults[F]{means: means}
}

// Add queues a fault for a number of calls: 0 is one, negative is all until Heal.
func (q *Faults[F]) Add(fault F, times int) {
	if times == 0 {
		times = 1
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, pending[F]{fault, times})
}

// Heal takes back what is queued.
func (q *Faults[F]) Heal() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = nil
}

// Next takes the first fault that means a call, the zero F if nothing is to go wrong with it.
func (q *Faults[F]) Next(call string) (fault F) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.queue, func(p pending[F]) bool { return q.means(&p.fault, call) })
	if i < 0 {
		return fault
	}
	next := &q.queue[i]
	fault = next.fault
	next.left--
	if next.left == 0 {
		q.queue = slices.Delete(q.queue, i, i+1)
	}
	return fault
}
