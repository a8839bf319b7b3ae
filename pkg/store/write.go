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
	"arizuko/pkg/lockfile"
	"arizuko/pkg/msg"
)

// maxGroup bounds the number of writes in one commit, and so the time that other
// processes wait for the write lock.
const maxGroup = 512

// job is one caller's write, waiting for a commit.
type job struct {
	fn   func(*Tx) error
	err  error
	done chan struct{}
}

// Tx is a running write. Its verbs return the database's errors unchanged; an
// error undoes only the write it occurred in.
type Tx struct {
	Reader
	pokes []string
	verbs []failpoint.Verb // whose failpoints surround the commit
	ended []turnEnd
	after []func()

	aliases *bool // whether there are any, nil before that is read
}

// turnEnd is a turn's final state.
type turnEnd struct {
	state  msg.TurnState
	reason msg.Reason
}

// Write runs fn inside a transaction and returns once that is on disk.
// Several callers share one commit. An error of fn undoes fn alone, unless
// SQLite rolls back the whole transaction, as it may when the disk is full: then
// every write in it fails with that error. fn must not block or call the
// network. Once queued, a write runs even if ctx ends, so that the caller always
// knows whether it was committed.
func (s *Store) Write(ctx context.Context, fn func(*Tx) error) error {
	return s.WriteAll(ctx, fn)[0]
}

// WriteAll runs each fn as a separate write, all in one commit if possible,
// and returns their errors in order.
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
		for _, fn := range tx.after {
			fn()
		}
		for _, j := range group {
			close(j.done)
		}
		for _, daemon := range tx.pokes {
			s.poke(daemon)
		}
		for _, e := range tx.ended {
			s.watch.TurnEnded(e.state, e.reason)
		}
	}
}

// commit runs the group in one transaction. If that fails, so does every write
// in it, and no daemon is poked.
func (s *Store) commit(st *statements, tx *Tx, group []*job) {
	err := s.transact(st, tx, group)
	if err == nil {
		return
	}
	tx.pokes, tx.verbs, tx.ended, tx.after = nil, nil, nil, nil
	for _, j := range group {
		if j.err == nil {
			j.err = Explain(err)
		}
	}
}

func (s *Store) transact(st *statements, tx *Tx, group []*job) (err error) {
	begun := time.Now()
	err = s.begin(st)
	locked := time.Now()
	s.watch.Locked(locked.Sub(begun))
	defer func() { s.watch.Committed(time.Since(locked), Explain(err)) }()
	if err != nil {
		return err
	}
	defer s.lock.release()
	for i, j := range group {
		if err := runJob(st, tx, j, i == 0); err != nil {
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

// begin waits for both locks, that of our processes and SQLite's, which a shell may hold. After an error
// neither is held.
func (s *Store) begin(st *statements) error {
	if err := s.lock.acquire(s.lockTimeout); err != nil {
		return err
	}
	if _, err := st.exec("BEGIN IMMEDIATE"); err != nil {
		s.lock.release()
		return err
	}
	return nil
}

// runJob runs one write under a savepoint; the first of a transaction needs none, since there is nothing before
// it to keep. An error of the write goes to its caller; the error returned means that the whole transaction is
// rolled back.
func runJob(st *statements, tx *Tx, j *job, first bool) error {
	if !first {
		if _, err := st.exec("SAVEPOINT verb"); err != nil {
			return err
		}
	}
	poked, noted, ended, after := len(tx.pokes), len(tx.verbs), len(tx.ended), len(tx.after)
	if err := call(j.fn, tx); err != nil {
		j.err = Explain(err)
		tx.pokes, tx.verbs, tx.ended, tx.after = tx.pokes[:poked], tx.verbs[:noted], tx.ended[:ended], tx.after[:after]
		if undo(st, first) != nil {
			return err
		}
	}
	if first {
		return nil
	}
	_, err := st.exec("RELEASE verb")
	return err
}

// undo rolls back a write, and for the first of a transaction begins the transaction again.
func undo(st *statements, first bool) error {
	if !first {
		_, err := st.exec("ROLLBACK TO verb")
		return err
	}
	_, _ = st.exec("ROLLBACK") // fails when SQLite has rolled back by itself
	_, err := st.exec("BEGIN IMMEDIATE")
	return err
}

// call runs fn and turns a panic into ErrRefused, as for a row that violates a
// constraint: the other writes of the transaction must go on.
func call(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %w: %v\n%s", ErrRefused, ErrPanic, cause, debug.Stack())
		}
	}()
	return fn(tx)
}

// Poke pokes a daemon once the transaction is committed.
func (tx *Tx) Poke(daemon string) {
	if daemon != "" && !slices.Contains(tx.pokes, daemon) {
		tx.pokes = append(tx.pokes, daemon)
	}
}

// AfterCommit runs fn once the transaction is committed and before Write returns, in the order of the
// writes; if it is rolled back, never. fn must not block, panic or write: all writes wait for it. It is
// for what is kept in memory beside rows.
func (tx *Tx) AfterCommit(fn func()) { tx.after = append(tx.after, fn) }

// note records a verb, whose failpoints are then reached around the commit.
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

// ErrLocked means that another process held the write lock for too long.
var ErrLocked = errors.New("database locked: another process has held the write lock for 10 s, " +
	"look for a stopped daemon or an open sqlite3 shell")

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
