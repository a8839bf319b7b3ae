package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/failpoint"
)

// maxGroup bounds how many writes one commit takes, and with that how long
// other processes wait for the write lock.
const maxGroup = 512

// job is one caller's write, waiting for a commit.
type job struct {
	fn   func(*Tx) error
	err  error
	done chan struct{}
}

// Tx is a write under way. Its verbs return errors of the database as they
// are; a verb that fails undoes only the write it was called from.
type Tx struct {
	Reader
	pokes []string
	verbs []failpoint.Verb // that have points around their commit
}

// Write runs fn inside a transaction and returns once that is on disk.
// Several callers share one commit; an error of fn undoes fn alone, unless
// SQLite gives up the whole transaction, as it may when the disk is full: then
// every write in it fails with that error. fn must not block or call the
// network. Once queued a write runs even if ctx ends, and its outcome is
// returned: nobody is left not knowing.
func (s *Store) Write(ctx context.Context, fn func(*Tx) error) error {
	return s.WriteAll(ctx, fn)[0]
}

// WriteAll runs each fn as a write of its own, all in one commit where
// possible, and returns their errors in order.
func (s *Store) WriteAll(ctx context.Context, fns ...func(*Tx) error) []error {
	jobs := make([]*job, len(fns))
	for i, fn := range fns {
		jobs[i] = &job{fn: fn, done: make(chan struct{})}
	}
	errs := make([]error, len(fns))
	if err := s.enqueue(ctx, jobs); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	for i, j := range jobs {
		<-j.done
		errs[i] = j.err
	}
	return errs
}

func (s *Store) enqueue(ctx context.Context, jobs []*job) error {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.jobs <- jobs:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) writeLoop() {
	defer close(s.done)
	st := &statements{prepare: s.conn.PrepareContext, uncancelled: true}
	var group []*job
	for jobs := range s.jobs {
		group = append(group[:0], jobs...)
		for more := true; more && len(group) < maxGroup; {
			select {
			case jobs, ok := <-s.jobs:
				group, more = append(group, jobs...), ok
			default:
				more = false
			}
		}
		tx := &Tx{Reader: Reader{st}}
		s.commit(st, tx, group)
		tx.reach(failpoint.Verb.After)
		for _, j := range group {
			close(j.done)
		}
		for _, daemon := range tx.pokes {
			s.poke(daemon)
		}
	}
}

// commit runs the group in one transaction. Where that fails every write in it
// has, and nobody is to be poked.
func (s *Store) commit(st *statements, tx *Tx, group []*job) {
	err := s.transact(st, tx, group)
	if err == nil {
		return
	}
	tx.pokes, tx.verbs = nil, nil
	for _, j := range group {
		if j.err == nil {
			j.err = explain(err)
		}
	}
}

func (s *Store) transact(st *statements, tx *Tx, group []*job) error {
	if err := s.lock.acquire(s.lockTimeout); err != nil {
		return err
	}
	defer s.lock.release()
	if _, err := st.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, j := range group {
		if err := runJob(st, tx, j); err != nil {
			_, _ = st.exec("ROLLBACK") // fails when SQLite has rolled back by itself
			return err
		}
	}
	tx.reach(failpoint.Verb.Before)
	if _, err := st.exec("COMMIT"); err != nil {
		_, _ = st.exec("ROLLBACK")
		return err
	}
	return nil
}

// runJob runs one write under a savepoint. Its own error is the caller's; the
// error returned means that the whole transaction is lost.
func runJob(st *statements, tx *Tx, j *job) error {
	if _, err := st.exec("SAVEPOINT verb"); err != nil {
		return err
	}
	poked, noted := len(tx.pokes), len(tx.verbs)
	if err := call(j.fn, tx); err != nil {
		j.err = explain(err)
		tx.pokes, tx.verbs = tx.pokes[:poked], tx.verbs[:noted]
		if _, back := st.exec("ROLLBACK TO verb"); back != nil {
			return err
		}
	}
	_, err := st.exec("RELEASE verb")
	return err
}

// call runs fn. One that panics is refused like a row that breaks a
// constraint: it must not take the process down with everyone's writes.
func call(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrRefused, cause, debug.Stack())
		}
	}()
	return fn(tx)
}

// Poke has daemon woken once the transaction is committed.
func (tx *Tx) Poke(daemon string) {
	if daemon != "" && !slices.Contains(tx.pokes, daemon) {
		tx.pokes = append(tx.pokes, daemon)
	}
}

// note has the points around the commit reached that a verb has.
func (tx *Tx) note(v failpoint.Verb) {
	if failpoint.Enabled {
		tx.verbs = append(tx.verbs, v)
	}
}

func (tx *Tx) reach(side func(failpoint.Verb) failpoint.Point) {
	for _, v := range tx.verbs {
		failpoint.At(side(v))
	}
}

func (tx *Tx) exec(query string, args ...any) (sql.Result, error) { return tx.q.exec(query, args...) }

// get reads the row that a writing verb returns or needs.
func (tx *Tx) get(dest []any, query string, args ...any) (bool, error) {
	return tx.q.get(uncancelled(), dest, query, args...)
}

// uncancelled is the context of every statement of a transaction. Many callers
// share one: an interrupt for one of them would roll back the writes of all.
func uncancelled() context.Context { return context.Background() }

// change runs a statement and returns how many rows it changed.
func (tx *Tx) change(query string, args ...any) (int64, error) {
	res, err := tx.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert runs an INSERT and returns the new row's id.
func (tx *Tx) insert(query string, args ...any) (int64, error) {
	res, err := tx.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// ErrLocked says that another process kept the write lock for too long.
var ErrLocked = errors.New("another process has held the database's write lock for 10 s: " +
	"look for a stopped daemon or an open sqlite3 shell")

// writeLock queues the processes that want to write. SQLite's own lock is
// retried by sleeping and so starves whoever sleeps longest; flock wakes its
// waiters in order.
type writeLock struct {
	file    *os.File
	pending chan error // where the blocking acquisition under way hands over; nil if there is none
}

func openWriteLock(path string) (*writeLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
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

// wait hands the lock to whoever waits for it when it comes. If nobody does
// any more it gives it back, so that a process that has stopped writing locks
// nobody out.
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
	// Unlocking a lock one holds cannot fail.
	_ = unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
}

func (l *writeLock) close() error {
	if l.pending == nil {
		return l.file.Close()
	}
	go func() {
		for range l.pending { // until the acquisition is over
		}
		_ = l.file.Close() // and with it the lock, if it came
	}()
	return nil
}
