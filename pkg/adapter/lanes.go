package adapter

import (
	"sync"

	"arizuko/pkg/store"
)

// laneLocks holds one lock for each thread of a chat. It is safe for concurrent use.
type laneLocks struct {
	mu   sync.Mutex
	held map[store.Lane]*laneLock
}

type laneLock struct {
	free  chan struct{} // holds one value while the lane is not locked
	users int           // that hold the lock or wait for it
}

// lock waits for the lane and returns its unlock function.
func (l *laneLocks) lock(lane store.Lane) (unlock func()) {
	l.mu.Lock()
	held := l.use(lane)
	l.mu.Unlock()
	<-held.free
	return func() { l.unlock(lane, held) }
}

// tryLock is lock for a lane that is free; free is false if it is locked.
func (l *laneLocks) tryLock(lane store.Lane) (unlock func(), free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[lane] != nil {
		return nil, false
	}
	held := l.use(lane)
	<-held.free
	return func() { l.unlock(lane, held) }, true
}

func (l *laneLocks) use(lane store.Lane) *laneLock {
	if l.held == nil {
		l.held = map[store.Lane]*laneLock{}
	}
	held := l.held[lane]
	if held == nil {
		held = &laneLock{free: make(chan struct{}, 1)}
		held.free <- struct{}{}
		l.held[lane] = held
	}
	held.users++
	return held
}

func (l *laneLocks) unlock(lane store.Lane, held *laneLock) {
	held.free <- struct{}{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if held.users--; held.users == 0 {
		delete(l.held, lane)
	}
}
