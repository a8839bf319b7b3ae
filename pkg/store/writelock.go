package store

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/lockfile"
)

// writeLock queues the processes that want to write. Waiters for SQLite's own
// lock sleep and retry, which starves the one that sleeps longest; flock wakes
// its waiters in order.
type writeLock struct {
	file    *os.File
	pending chan error // receives the result of the running, blocking flock; nil if none runs
}

func openWriteLock(path string) (*writeLock, error) {
	f, err := lockfile.Open(path)
	if err != nil {
		return nil, err
	}
	return &writeLock{file: f}, nil
}

func (l *writeLock) acquire(timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		if l.pending == nil {
			err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			if !errors.Is(err, unix.EWOULDBLOCK) {
				return err
			}
			l.pending = make(chan error)
			go l.wait(l.pending)
		}
		select {
		case err, handedOver := <-l.pending:
			l.pending = nil
			if handedOver {
				return err
			}
		case <-timer.C:
			return ErrLocked
		}
	}
}

// wait passes the lock on to acquire once it has it. If acquire has timed out, it
// releases the lock, so that a process that does not write any more blocks none.
func (l *writeLock) wait(pending chan<- error) {
	defer close(pending)
	var err error = unix.EINTR
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(l.file.Fd()), unix.LOCK_EX)
	}
	select {
	case pending <- err:
	default:
		l.release()
	}
}

func (l *writeLock) release() {
	// Unlocking a held lock cannot fail.
	_ = unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
}

func (l *writeLock) close() error {
	if l.pending == nil {
		return l.file.Close()
	}
	go func() {
		for range l.pending { // until the flock returns
		}
		_ = l.file.Close() // which also releases the lock
	}()
	return nil
}
