package store

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"slices"
	"time"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/pg"
)

// maxGroup bounds the number of writes in one commit, and so the time that others
// wait for the write lock.
const maxGroup = 512

// maxScoped is the same for writes with scopes, which exclude those of the same keys alone: the more there are in a
// transaction, the more others wait for it, and it for them.
const maxScoped = 8

// Scope names what a write touches: all rows that it changes, and those that it reads to decide what to change, belong
// to one of the keys. On a server, writes with no key in common run at the same time; in a file one follows the
// other. A nil scope stands for everything.
//
// Keys are the addresses of chats, the folders of groups, and names of other things that a package makes up. A write that
// finds that it touches more, see Tx.Within, is undone and run again with a nil scope.
type Scope []string

// Change is one of several writes.
type Change struct {
	Scope Scope
	Write func(*Tx) error
}

// job is one caller's write, waiting for a commit.
type job struct {
	Change
	err  error
	done chan struct{}
}

// lane runs writes one after the other.
type lane struct {
	store  *Store
	writer writer
	jobs   chan []*job
	most   int // jobs in a transaction
}

// Tx is a running write. Its verbs return the database's errors unchanged; an
// error undoes only the write it occurred in.
type Tx struct {
	Reader
	process int64 // see Store.SetProcess
	scope   Scope // of the write that runs
	beside  bool  // see Beside
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
// knows whether it was committed; one that has to run again without its scope may fail with ctx's error instead.
func (s *Store) Write(ctx context.Context, fn func(*Tx) error) error {
	return s.WriteIn(ctx, nil, fn)
}

// WriteIn is Write for a write that touches only what belongs to a scope.
func (s *Store) WriteIn(ctx context.Context, scope Scope, fn func(*Tx) error) error {
	return s.WriteEach(ctx, Change{scope, fn})[0]
}

// WriteAll runs each fn as a separate write, all in one commit if possible,
// and returns their errors in order.
func (s *Store) WriteAll(ctx context.Context, fns ...func(*Tx) error) []error {
	changes := make([]Change, len(fns))
	for i, fn := range fns {
		changes[i].Write = fn
	}
	return s.WriteEach(ctx, changes...)
}

// WriteEach is WriteAll for writes with scopes.
func (s *Store) WriteEach(ctx context.Context, changes ...Change) []error {
	jobs, errs := make([]*job, len(changes)), make([]error, len(changes))
	lanes := make([][]*job, len(s.lanes))
	for i, c := range changes {
		jobs[i] = &job{Change: c, done: make(chan struct{})}
		at := s.laneOf(c.Scope)
		lanes[at] = append(lanes[at], jobs[i])
	}
	for at, group := range lanes {
		if len(group) == 0 {
			continue
		}
		if err := s.enqueue(ctx, s.lanes[at], group); err != nil {
			for _, j := range group {
				j.err = err
				close(j.done)
			}
		}
	}
	for i, j := range jobs {
		<-j.done
		if errs[i] = j.err; errors.Is(j.err, errScope) {
			errs[i] = s.Write(ctx, j.Write)
		}
	}
	return errs
}

// laneOf returns the index of the lane for writes of a scope: those that begin with the same key share their commits.
func (s *Store) laneOf(scope Scope) int {
	if others := len(s.lanes) - 1; len(scope) > 0 && others > 0 {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(scope[0]))
		return 1 + int(hash.Sum32()>>16)%others // other bits than those that choose the locks
	}
	return 0
}

func (s *Store) enqueue(ctx context.Context, l *lane, jobs []*job) error {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.jobs <- jobs:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lane) run() {
	var waiting []*job
	for jobs := range l.jobs {
		waiting = append(waiting[:0], jobs...)
		for len(waiting) > 0 {
			for more := true; more && len(waiting) < l.most; {
				select {
				case jobs, ok := <-l.jobs:
					waiting, more = append(waiting, jobs...), ok
				default:
					more = false
				}
			}
			n := min(len(waiting), l.most)
			l.runGroup(waiting[:n])
			waiting = waiting[n:]
		}
	}
}

// runGroup runs jobs in one transaction.
func (l *lane) runGroup(group []*job) {
	tx := &Tx{process: l.store.process.Load(), beside: len(l.store.lanes) > 1 && scopeOf(group) != nil}
	if err := l.commit(tx, group); errors.Is(err, pg.ErrNoRoom) {
		l.passOn(group)
		return
	}
	tx.reach(failpoint.Verb.After)
	for _, j := range group {
		close(j.done)
	}
	for _, daemon := range tx.pokes {
		l.store.poke(daemon)
	}
	for _, e := range tx.ended {
		l.store.watch.TurnEnded(e.state, e.reason)
	}
}

// passOn gives jobs that have not begun to the first lane.
func (l *lane) passOn(group []*job) {
	for _, j := range group {
		j.err = nil
	}
	if err := l.store.enqueue(context.Background(), l.store.lanes[0], slices.Clone(group)); err != nil {
		for _, j := range group {
			j.err = err
			close(j.done)
		}
	}
}

// scopeOf is the scope of all writes of a group together.
func scopeOf(group []*job) Scope {
	scope := Scope{}
	for _, j := range group {
		if j.Scope == nil {
			return nil
		}
		scope = append(scope, j.Scope...)
	}
	return scope
}

// commit runs the group in one transaction. If that fails, so does every write
// in it, and no daemon is poked.
func (l *lane) commit(tx *Tx, group []*job) error {
	err := l.transact(tx, group)
	if err == nil {
		return nil
	}
	tx.pokes, tx.verbs, tx.ended = nil, nil, nil
	for _, j := range group {
		if j.err == nil {
			j.err = Explain(err)
		}
	}
	return err
}

func (l *lane) transact(tx *Tx, group []*job) (err error) {
	watch := &l.store.watch
	begun := time.Now()
	locked := begun
	st, err := l.writer.begin(l.store.lockTimeout, tx.process, scopeOf(group), func() {
		locked = time.Now()
		watch.Locked(locked.Sub(begun))
	})
	if errors.Is(err, pg.ErrNoRoom) {
		return err
	}
	defer func() { watch.Committed(time.Since(locked), Explain(err)) }()
	if err != nil {
		return err
	}
	tx.Reader = Reader{st}
	for i, j := range group {
		if err := l.runJob(st, tx, j, i == 0, len(group) == 1); err != nil {
			l.writer.rollback(st)
			return err
		}
	}
	tx.reach(failpoint.Verb.Before)
	return l.writer.commit(st, tx.pokes)
}

// runJob runs one write under a savepoint; the first of a transaction needs none, since there is nothing before
// it to keep. An error of the write goes to its caller; the error returned means that the whole transaction is
// rolled back. Statements that a write alone has left unsent go with the COMMIT.
func (l *lane) runJob(st *statements, tx *Tx, j *job, first, alone bool) error {
	if !first {
		if err := st.savepoint(); err != nil {
			return err
		}
	}
	tx.scope = j.Scope
	poked, noted, ended := len(tx.pokes), len(tx.verbs), len(tx.ended)
	st.failed = nil
	err := call(j.Write, tx)
	if err == nil {
		err = st.failed
	}
	if err == nil && !alone {
		err = st.settle()
	}
	if err != nil {
		j.err = Explain(err)
		tx.pokes, tx.verbs, tx.ended = tx.pokes[:poked], tx.verbs[:noted], tx.ended[:ended]
		if l.undo(st, first) != nil {
			return err
		}
	}
	if first {
		return nil
	}
	return st.release()
}

// undo rolls back a write, and for the first of a transaction begins the transaction again.
func (l *lane) undo(st *statements, first bool) error {
	if first {
		return l.writer.restart(st)
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
	return tx.q.later(nil, query, args...)
}

// Expect runs a statement that must change a row. If it changes none, the write fails with an error: at once, or on a
// server perhaps with a later statement.
func (tx *Tx) Expect(otherwise error, query string, args ...any) error {
	return tx.q.later(otherwise, query, args...)
}

// Late is a key that is for one more thing besides what the write is about: it is waited for after the others. A write with
// Shared of it runs beside others with that, and not beside one with Late.
func Late(key string) string { return pg.Late + key }

// Shared is described at Late.
func Shared(key string) string { return pg.Shared + key }

// errScope undoes a write that touches more than its scope says.
var errScope = errors.New("the write touches more than its scope")

// Within returns an error, which undoes the write and runs it again alone, if a key is not in its scope.
func (tx *Tx) Within(key string) error {
	if tx.scope == nil || slices.Contains(tx.scope, key) {
		return nil
	}
	return errScope
}

// Beside reports whether writes with other scopes run beside this one.
func (tx *Tx) Beside() bool { return tx.beside }

// Settle sends the statements that a server would get with a later one, so that an error is that of those before.
func (tx *Tx) Settle() error { return tx.q.settle() }

// NumberDecision makes the DecisionNumber of the next statement.
func (tx *Tx) NumberDecision() error {
	if !tx.q.dialect.ordered() {
		return nil // a sequence does it
	}
	return tx.Exec(BumpState, StateDecisionSeq)
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
