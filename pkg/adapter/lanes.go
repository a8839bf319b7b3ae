package adapter

import (
	"sync"

	"arizuko/pkg/store"
)

// laneLocks is a lock for each thread of a chat. It is safe for concurrent use.
type laneLocks struct {
	mu    sync.Mutex
	freed *sync.Cond // of mu
	held  map[store.Lane]bool
}

func newLaneLocks() *laneLocks {
	l := &laneLocks{held: map[store.Lane]bool{}}
	l.freed = sync.NewCond(&l.mu)
	return l
}

// lock waits for the lane and returns its unlock function.
func (l *laneLocks) lock(lane store.Lane) (unlock func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.held[lane] {
		l.freed.Wait()
	}
	l.held[lane] = true
	return func() { l.unlock(lane) }
}

// tryLock is lock for a lane that is free; free is false if it is locked.
func (l *laneLocks) tryLock(lane store.Lane) (unlock func(), free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[lane] {
		return nil, false
	}
	l.held[lane] = true
	return func() { l.unlock(lane) }, true
}

func (l *laneLocks) unlock(lane store.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, lane)
	l.freed.Broadcast()
}
