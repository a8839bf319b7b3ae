package fakeserver

import (
	"slices"
	"sync"
	"time"
)

const (
	// keptEvents is how many delivered events are kept for Redeliver.
	keptEvents = 1000
	// maxHold is how long events that are to be reversed wait for the others.
	maxHold = 2 * time.Second
)

// Events passes the events of a fake on to the bot. Tests can have some of them repeated or reordered.
// E is an event of one platform.
type Events[E any] struct {
	lock      sync.Locker
	deliver   func(e E, times int)
	redeliver func([]E)

	duplicates int
	reversals  int // how many future events to reverse
	held       []E
	holds      int // how often held has begun to fill
	delivered  []E // the last keptEvents
}

// NewEvents returns a queue without faults. lock is the fake's own lock, which it holds when it calls
// Emit, Delivered and Held. The other two are called with it: deliver delivers an event, times times in
// a row, and redeliver repeats events that were delivered before.
func NewEvents[E any](lock sync.Locker, deliver func(e E, times int), redeliver func([]E)) *Events[E] {
	return &Events[E]{lock: lock, deliver: deliver, redeliver: redeliver}
}

// Emit delivers an event, or holds it until those after it that are to come first have been delivered.
func (q *Events[E]) Emit(e E) {
	if q.reversals == 0 {
		q.pass(e)
		return
	}
	q.held = append(q.held, e)
	switch len(q.held) {
	case q.reversals:
		q.release()
	case 1:
		q.releaseLater()
	}
}

func (q *Events[E]) pass(e E) {
	times := 1
	if q.duplicates > 0 {
		q.duplicates--
		times = 2
	}
	q.deliver(e, times)
}

// release delivers the held events, the last one first.
func (q *Events[E]) release() {
	held := q.held
	q.held, q.reversals = nil, 0
	for _, e := range slices.Backward(held) {
		q.pass(e)
	}
}

// releaseLater releases the held events after maxHold: without it they would be lost if too few followed.
func (q *Events[E]) releaseLater() {
	q.holds++
	hold := q.holds
	time.AfterFunc(maxHold, func() {
		q.lock.Lock()
		defer q.lock.Unlock()
		if q.holds == hold && len(q.held) > 0 {
			q.release()
		}
	})
}

// Held is how many events wait to be reversed.
func (q *Events[E]) Held() int { return len(q.held) }

// Delivered notes that an event has reached the bot, for Redeliver.
func (q *Events[E]) Delivered(e E) {
	q.delivered = append(q.delivered, e)
	if extra := len(q.delivered) - keptEvents; extra > 0 {
		q.delivered = slices.Delete(q.delivered, 0, extra)
	}
}

// DuplicateNext delivers each of the next n events twice.
func (q *Events[E]) DuplicateNext(n int) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.duplicates = n
}

// ReverseNext holds the next n events back, and delivers them in reverse order: after the nth, or two
// seconds after the first.
func (q *Events[E]) ReverseNext(n int) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.release()
	q.reversals = n
}

// Redeliver delivers the last n events again, as a platform does if their confirmation was lost, and
// returns how many there were.
func (q *Events[E]) Redeliver(n int) int {
	q.lock.Lock()
	defer q.lock.Unlock()
	n = min(n, len(q.delivered))
	q.redeliver(slices.Clone(q.delivered[len(q.delivered)-n:]))
	return n
}
