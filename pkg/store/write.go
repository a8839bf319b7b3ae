package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"arizuko/pkg/failpoint"
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
	process int64 // see Store.SetProcess
	pokes   []string
	verbs   []failpoint.Verb // whose failpoints surround the commit
	ended   []turnEnd

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
// every write in it fails with that error. An error of a statement fails its write, even if
// fn returns none: not all engines can go on after one. fn must not block or call the
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
		tx := &Tx{process: s.process.Load()}
		s.commit(tx, group)
		tx.reach(failpoint.Verb.After)
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
func (s *Store) commit(tx *Tx, group []*job) {
	err := s.transact(tx, group)
	if err == nil {
		return
	}
	tx.pokes, tx.verbs, tx.ended = nil, nil, nil
	for _, j := range group {
		if j.err == nil {
			j.err = Explain(err)
		}
	}
}

func (s *Store) transact(tx *Tx, group []*job) (err error) {
	begun := time.Now()
	locked := begun
	st, err := s.engine.begin(s.lockTimeout, tx.process, func() {
		locked = time.Now()
		s.watch.Locked(locked.Sub(begun))
	})
	defer func() { s.watch.Committed(time.Since(locked), Explain(err)) }()
	if err != nil {
		return err
	}
	tx.Reader = Reader{st}
	for i, j := range group {
		if err := s.runJob(st, tx, j, i == 0, len(group) == 1); err != nil {
			s.engine.rollback(st)
			return err
		}
	}
	tx.reach(failpoint.Verb.Before)
	return s.engine.commit(st, tx.pokes)
}

// runJob runs one write under a savepoint; the first of a transaction needs none, since there is nothing before
// it to keep. An error of the write goes to its caller; the error returned means that the whole transaction is
// rolled back. What a write alone has left unsent goes with the COMMIT.
func (s *Store) runJob(st *statements, tx *Tx, j *job, first, alone bool) error {
	if !first {
		if err := st.savepoint(); err != nil {
			return err
		}
	}
	poked, noted, ended := len(tx.pokes), len(tx.verbs), len(tx.ended)
	st.failed = nil
	err := call(j.fn, tx)
	if err == nil {
		err = st.failed
	}
	if err == nil && !alone {
		err = st.settle()
	}
	if err != nil {
		j.err = Explain(err)
		tx.pokes, tx.verbs, tx.ended = tx.pokes[:poked], tx.verbs[:noted], tx.ended[:ended]
		if s.undo(st, first) != nil {
			return err
		}
	}
	if first {
		return nil
	}
	return st.release()
}

// undo rolls back a write, and for the first of a transaction begins the transaction again.
func (s *Store) undo(st *statements, first bool) error {
	if first {
		return s.engine.restart(st)
	}
	return st.undo()
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

// Poke pokes a daemon once the transaction is committed: where the database is a server, all that listen there
// (ListenForPokes); and by Options.Poke.
func (tx *Tx) Poke(daemon string) {
	if daemon != "" && !slices.Contains(tx.pokes, daemon) {
		tx.pokes = append(tx.pokes, daemon)
	}
}

// PokePeers pokes the other gated of a database that several share: a turn, a run, a question or a reminder has
// changed.
func (tx *Tx) PokePeers() {
	if tx.process != 0 {
		tx.Poke("gated")
	}
}

// TurnEnded reports a turn's end to Observer.TurnEnded once it is committed.
func (tx *Tx) TurnEnded(state msg.TurnState, reason msg.Reason) {
	tx.ended = append(tx.ended, turnEnd{state, reason})
}

// OwnProcess is the row of processes that Store.SetProcess has set, 0 if the database is a file.
func (tx *Tx) OwnProcess() int64 { return tx.process }

// Note records a verb, whose failpoints are then reached around the commit.
func (tx *Tx) Note(v failpoint.Verb) {
	if failpoint.Enabled {
		tx.verbs = append(tx.verbs, v)
	}
}

func (tx *Tx) reach(side func(failpoint.Verb) failpoint.Point) {
	for _, v := range tx.verbs {
		failpoint.At(side(v))
	}
}

// Exec runs a statement. Its error may be that of a later one: it fails the write in any case.
func (tx *Tx) Exec(query string, args ...any) error {
	return tx.q.later(query, args...)
}

// Find reads the row that a writing verb returns or needs.
func (tx *Tx) Find(dest []any, query string, args ...any) (bool, error) {
	return tx.Get(Uncancelled(), dest, query, args...)
}

// Uncancelled is the context of every statement of a transaction. Many callers
// share one: an interrupt for one of them would roll back the writes of all.
func Uncancelled() context.Context { return context.Background() }

// Change runs a statement and returns how many rows it changed.
func (tx *Tx) Change(query string, args ...any) (int64, error) {
	res, err := tx.q.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Insert runs an INSERT and returns the new row's id.
func (tx *Tx) Insert(query string, args ...any) (int64, error) {
	id, _, err := tx.q.dialect.insert(tx.q, query, args)
	return id, err
}

// ErrLocked means that another process held the write lock for too long.
var ErrLocked = errors.New("database locked: another process has held the write lock for 10 s, " +
	"look for a stopped daemon or an open sqlite3 shell")
