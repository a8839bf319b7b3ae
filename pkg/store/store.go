// Package store opens the shared database file with one write connection and a
// read-only pool, or connects to a server, and commits the writes of several
// callers together. It has the statements that several daemons need, as verbs per
// noun: the methods of Reader read, those of Tx write. A statement that one daemon
// alone needs is in that daemon's package rows, which runs it with All, Value and the
// like.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/mattn/go-sqlite3" // the database/sql driver

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// Sizes and timeouts. The cache is per connection. The timeouts are long enough
// for a checkpoint on a slow disk, and short enough that the error still reaches
// a user who waits for an answer.
const (
	busyTimeout    = 10 * time.Second
	lockTimeout    = 10 * time.Second
	writerCacheKiB = 8192
	readerCacheKiB = 2048
	readers        = 4
	serverReaders  = 8               // for a process with many chats: reads mostly wait for the network
	serverWriters  = 5               // one is for writes without a scope
	manyWriters    = 26              // of a process with many chats
	maxQueued      = 64              // queued calls of Write for one writer; further callers wait
	closeTimeout   = 5 * time.Second // that a commit has to become known while the store closes

	// maxIdleWAL is the size, in bytes, that the write-ahead log is cut back to when
	// it starts over after a large write. It is above the log of a busy minute.
	maxIdleWAL = 64 << 20

	// DefaultAutocheckpoint, in WAL pages, is for every daemon but gated, which
	// runs the checkpoints: it applies while gated is down.
	DefaultAutocheckpoint = 10_000
)

// Options of Open.
type Options struct {
	// Path of the database file; it must exist and be migrated.
	Path string
	// Autocheckpoint in WAL pages; 0 turns it off.
	Autocheckpoint int
	// ManyChats makes a process that works on many chats at once use more connections to a server.
	ManyChats bool
	// Poke is called with the name of each daemon for which rows were committed;
	// nil for none, as with a server, which pokes daemons itself.
	Poke func(daemon string)
	// Observer receives measurements; its functions must not block, and may be nil.
	Observer Observer
}

// Observer receives the measurements of a Store, from the goroutines that write.
type Observer struct {
	Locked    func(wait time.Duration)            // a commit has the write lock, or has waited without getting it
	Committed func(took time.Duration, err error) // a commit has ended; took begins with the write lock
	TurnEnded func(msg.TurnState, msg.Reason)     // a turn's end was committed
}

// Store is one process's access to the database. Its methods are safe for
// concurrent use.
type Store struct {
	Reader
	engine  engine
	poke    func(string)
	watch   Observer
	process atomic.Int64 // see SetProcess; 0 if the database is a file
	atOnce  int          // see AtOnce
	lanes   []*lane
	done    sync.WaitGroup

	lockTimeout time.Duration

	closing sync.RWMutex
	closed  bool
}

// complete returns o with functions in place of those that are nil.
func (o Observer) complete() Observer {
	if o.Locked == nil {
		o.Locked = func(time.Duration) {}
	}
	if o.Committed == nil {
		o.Committed = func(time.Duration, error) {}
	}
	if o.TurnEnded == nil {
		o.TurnEnded = func(msg.TurnState, msg.Reason) {}
	}
	return o
}

// ErrClosed is returned by writes after Close.
var ErrClosed = errors.New("the store is closed")

// Open opens an existing, migrated database file. It reads back every option
// that durability and locking depend on and fails if one is not in effect.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{poke: o.Poke, watch: o.Observer.complete(), lockTimeout: lockTimeout, atOnce: 1}
	if s.poke == nil {
		s.poke = func(string) {}
	}
	if err := s.open(ctx, o); err != nil {
		s.closeHandles()
		return nil, fmt.Errorf("open %s: %w", Name(o.Path), Explain(err))
	}
	for i, w := range s.engine.writers() {
		l := &lane{store: s, writer: w, jobs: make(chan []*job, maxQueued), most: maxGroup}
		if i > 0 {
			l.most = maxScoped
		}
		s.lanes = append(s.lanes, l)
		s.done.Go(l.run)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) (err error) {
	if s.engine, err = openEngine(ctx, o); err != nil {
		return err
	}
	s.Reader = newReader(s.engine.readers(), s.engine)
	if IsServer(o.Path) && o.ManyChats {
		s.atOnce = serverReaders
	}
	return s.engine.readers().PingContext(ctx)
}

// AtOnce is how many reads a caller should run at once: on a file one, since a second would cost more than it saves.
func (s *Store) AtOnce() int { return s.atOnce }

// AllAtOnce calls do for 0 to n-1, as many at once as AtOnce says, and returns when all have ended.
func (s *Store) AllAtOnce(n int, do func(i int)) {
	if s.AtOnce() == 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	var panicked atomic.Value
	for range min(n, s.AtOnce()) {
		all.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					panicked.CompareAndSwap(nil, fmt.Sprintf("%v\n%s", cause, debug.Stack()))
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
	if cause := panicked.Load(); cause != nil {
		panic(cause)
	}
}

// SetProcess says which row of processes is this process. Each later write fails with ErrFenced once that is fenced.
func (s *Store) SetProcess(id int64) { s.process.Store(id) }

// Close finishes the queued writes, then closes the file. Later writes return
// ErrClosed.
func (s *Store) Close() error {
	s.closing.Lock()
	if s.closed {
		s.closing.Unlock()
		return nil
	}
	s.closed = true
	for _, l := range s.lanes {
		close(l.jobs)
	}
	s.closing.Unlock()
	giveUp := time.AfterFunc(closeTimeout, s.engine.giveUp)
	s.done.Wait()
	giveUp.Stop()
	return s.closeHandles()
}

func (s *Store) closeHandles() error {
	if s.engine == nil {
		return nil
	}
	return s.engine.close()
}

// Reader carries the reading verbs. A Store reads from its pool and returns the
// context's error if that ends; a Tx reads within its transaction to the end.
type Reader struct{ q *statements }

// Each calls row for every row of a query, until row returns false or an error.
func (r Reader) Each(ctx context.Context, row func(scan Scan) (more bool, err error), query string, args ...any) error {
	return r.Scan(ctx, false, row, query, args...)
}

// Scan is each; if interrupts, the end of the context stops a step between two rows, too.
func (r Reader) Scan(ctx context.Context, interrupts bool, row func(scan Scan) (more bool, err error), query string,
	args ...any) error {
	return r.q.scan(ctx, interrupts, row, query, args...)
}

// Matching returns an expression of SearchQuery in the words of the engine's index.
func (r Reader) Matching(expression string) string { return r.q.dialect.match(expression) }

// Get scans one row into dest and reports whether there was one.
func (r Reader) Get(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	return r.q.get(ctx, dest, query, args...)
}

// statements are the runner of a pool that reads, or of a transaction.
type statements struct {
	runner
	dialect     dialect
	failed      error // in a transaction: the first error of a statement since the write began
	uncancelled bool  // in a transaction: the end of a caller's context stops no read
}

// runner runs statements.
type runner interface {
	// exec runs a statement that writes.
	exec(query string, args []any) (sql.Result, error)
	// later runs a statement that writes and whose result is not needed. A server gets it with the next one: its error
	// then fails the write. So does otherwise, unless it is nil, if the statement changes no row.
	later(otherwise error, query string, args []any) error
	// query calls row for every row of a query, until row returns false or an error. The end of the context stops the
	// step between two rows.
	query(ctx context.Context, row func(Scan) (more bool, err error), query string, args []any) error
	// savepoint begins a part of a transaction that undo takes back. It has a single level.
	savepoint() error
	// settle fails with the error of a statement of the part that was not sent yet.
	settle() error
	// undo goes back to the savepoint.
	undo() error
	// release ends the part.
	release() error
}

func newReader(db *sql.DB, d dialect) Reader {
	return Reader{&statements{runner: &prepared{prepare: db.PrepareContext, dialect: d}, dialect: d}}
}

// ended returns the context's error if reads are to stop for it.
func (p *statements) ended(ctx context.Context) error {
	if p.uncancelled {
		return nil
	}
	return ctx.Err()
}

// exec runs a statement that writes.
func (p *statements) exec(query string, args ...any) (result sql.Result, err error) {
	defer p.note(&err)
	return p.runner.exec(query, args)
}

// later runs a statement that writes and whose result is not needed; unless otherwise is nil, it must change a row.
func (p *statements) later(otherwise error, query string, args ...any) (err error) {
	defer p.note(&err)
	return p.runner.later(otherwise, query, args)
}

// note keeps the first error of a write's statements: it fails the write, whatever the writer makes of it.
func (p *statements) note(err *error) {
	if p.uncancelled && p.failed == nil && *err != nil {
		p.failed = *err
	}
}

// scan calls row for every row of a query, until row returns false or an error; if interrupts, the end of the context
// stops a step between two rows, too.
//
// The driver of SQLite gets no other context that can end: for one it starts a goroutine per row, which costs a third
// of a short read. Every statement is short, so the context is checked before it and between its rows.
func (p *statements) scan(ctx context.Context, interrupts bool, row func(scan Scan) (more bool, err error),
	query string, args ...any) (err error) {
	defer p.note(&err)
	if err := p.ended(ctx); err != nil {
		return err
	}
	driver := ctx
	if !interrupts {
		driver = context.WithoutCancel(ctx)
	}
	return p.query(driver, func(scan Scan) (bool, error) {
		if err := p.ended(ctx); err != nil {
			return false, err
		}
		return row(scan)
	}, query, args)
}

// get scans one row into dest and reports whether there was one.
func (p *statements) get(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	err = p.scan(ctx, false, func(scan Scan) (bool, error) {
		found = true
		return false, scan(dest...)
	}, query, args...)
	return found && err == nil, err
}

// prepared runs statements by database/sql, and prepares each query once.
type prepared struct {
	prepare func(context.Context, string) (*sql.Stmt, error)
	dialect dialect
	cache   sync.Map // query → *sql.Stmt
}

func (p *prepared) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := p.cache.Load(query); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := p.prepare(ctx, p.dialect.translate(query))
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	if other, loaded := p.cache.LoadOrStore(query, st); loaded {
		_ = st.Close()
		return other.(*sql.Stmt), nil
	}
	return st, nil
}

func (p *prepared) exec(query string, args []any) (sql.Result, error) {
	failpoint.Statement(query)
	st, err := p.stmt(Uncancelled(), query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(Uncancelled(), p.dialect.arguments(args)...)
}

func (p *prepared) later(otherwise error, query string, args []any) error {
	result, err := p.exec(query, args)
	if err != nil || otherwise == nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return otherwise
}

func (p *prepared) query(ctx context.Context, row func(Scan) (bool, error), query string, args []any) error {
	failpoint.Statement(query)
	st, err := p.stmt(ctx, query)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, p.dialect.arguments(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more && rows.Next(); {
		if more, err = row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (p *prepared) savepoint() error { return p.later(nil, "SAVEPOINT verb", nil) }
func (p *prepared) settle() error    { return nil }
func (p *prepared) undo() error      { return p.later(nil, "ROLLBACK TO verb", nil) }
func (p *prepared) release() error   { return p.later(nil, "RELEASE verb", nil) }

// Scan is the Scan method of a row.
type Scan = func(dest ...any) error

// All scans every row of a query with scan.
func All[T any](ctx context.Context, r Reader, scan func(Scan) (T, error), query string,
	args ...any) (all []T, err error) {
	err = r.Each(ctx, func(row Scan) (bool, error) {
		v, err := scan(row)
		if err == nil {
			all = append(all, v)
		}
		return true, err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Value reads the one value of a query, its zero if there is no row.
func Value[T any](ctx context.Context, r Reader, query string, args ...any) (v T, err error) {
	_, err = r.Get(ctx, []any{&v}, query, args...)
	return v, err
}

// One is the scan of a single column.
func One[T any](scan Scan) (v T, err error) {
	err = scan(&v)
	return v, err
}
