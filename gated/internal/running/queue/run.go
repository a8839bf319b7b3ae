package queue

import (
	"time"

	"arizuko/pkg/msg"
)

// run is a process as the queue knows it.
type run struct {
	id      int64
	address msg.Address
	lane    *lane
	single  bool // it gets no other turn before it has answered
	folds   bool // it takes in turns while it works on one
	ahead   int  // turns that it took, since it became busy, while other lanes waited
	closing bool
	wanted  bool      // another lane waits for its session
	waiting bool      // for a user's answer: it uses no slot
	open    int       // turns it has not answered
	taking  *Turn     // a queued turn on its way to it
	busyAt  time.Time // when its lane last got a slot
	idleAt  time.Time
}

// load is the number of turns that the run has or is about to have.
func (r *run) load() int {
	if r.taking != nil {
		return r.open + 1
	}
	return r.open
}

// busy reports whether the run uses a slot.
func (r *run) busy() bool { return r.load() > 0 && !r.waiting }

// accepts reports whether a turn may be piped to the run.
func (r *run) accepts(t Turn) bool {
	return !r.closing && !r.wanted && !r.single && !t.Alone && r.address == t.Address && r.load() < msg.MaxRunTurns
}
