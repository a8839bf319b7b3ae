package fakeserver

import (
	"slices"
	"sync"
)

// Faults is a queue of deliberate errors. F is the fault of one platform.
type Faults[F any] struct {
	matches func(f *F, call string) bool
	prepare func(f *F) (times int)

	mu    sync.Mutex
	queue []pendingFault[F]
}

type pendingFault[F any] struct {
	fault F
	left  int // calls; negative is without limit
}

// NewFaults returns an empty queue. matches reports whether a fault is for calls of that name.
// prepare completes a fault that is injected, and returns for how many calls it is: 0 is one,
// negative is all until ClearFaults.
func NewFaults[F any](matches func(f *F, call string) bool, prepare func(f *F) (times int)) *Faults[F] {
	return &Faults[F]{matches: matches, prepare: prepare}
}

// InjectFault makes future calls fail. Faults are queued: a call takes the first that matches it.
func (q *Faults[F]) InjectFault(faults ...F) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, f := range faults {
		times := q.prepare(&f)
		if times == 0 {
			times = 1
		}
		q.queue = append(q.queue, pendingFault[F]{f, times})
	}
}

// ClearFaults removes all faults from the queue.
func (q *Faults[F]) ClearFaults() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = nil
}

// NextFault takes the first fault that matches a call; the zero F if there is none.
func (q *Faults[F]) NextFault(call string) (fault F) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.queue, func(p pendingFault[F]) bool { return q.matches(&p.fault, call) })
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
