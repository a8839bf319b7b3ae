// Package store is the only package with SQL. It opens the shared database file
// with one write connection and a read-only pool, and commits the writes of
// several callers together. It has verbs per noun: the methods of Reader read,
// those of Tx write.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // the database/sql driver

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
	maxQueued      = 64 // queued calls of Write; further callers wait

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
	// Poke is called with the name of each daemon for which rows were committed;
	// nil for none.
	Poke func(daemon string)
	// Observer receives what is measured; its functions must not block, and may be nil.
	Observer Observer
}

// Observer receives what a Store measures, from its one writing goroutine.
type Observer struct {
	Locked    func(wait time.Duration)            // a commit has the write lock, or has waited without getting it
	Committed func(took time.Duration, err error) // a commit has ended; took begins with the write lock
	TurnEnded func(msg.TurnState, msg.Reason)     // a turn's end was committed
}

// Store is one process's access to the database. Its methods are safe for
// concurrent use.
type Store struct {
	Reader
	path   string
	poke   func(string)
	writer *sql.DB
	read   *sql.DB
	conn   *sql.Conn
	lock   *writeLock
	watch  Observer
	jobs   chan []*job
	done   chan struct{}

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
	s := &Store{path: o.Path, poke: o.Poke, watch: o.Observer.complete(), lockTimeout: lockTimeout,
		jobs: make(chan []*job, maxQueued), done: make(chan struct{})}
	if s.poke == nil {
		s.poke = func(string) {}
	}
	if err := s.open(ctx, o); err != nil {
		s.closeHandles()
		return nil, fmt.Errorf("open %s: %w", o.Path, Explain(err))
	}
	go s.writeLoop()
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) (err error) {
	if s.lock, err = openWriteLock(o.Path + ".writelock"); err != nil {
		return err
	}
	if s.writer, err = sql.Open("sqlite3", dsn(o.Path, "rw", writerCacheKiB)); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	if s.conn, err = s.writer.Conn(ctx); err != nil {
		return err
	}
	if err = s.conn.PingContext(ctx); err != nil {
		return err
	}
	for _, pragma := range []string{"wal_autocheckpoint=" + strconv.Itoa(o.Autocheckpoint), "journal_size_limit=" + strconv.Itoa(maxIdleWAL)} {
		if _, err = s.conn.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return err
		}
	}
	if err = checkOptions(ctx, s.conn, o.Autocheckpoint); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite3", dsn(o.Path, "ro", readerCacheKiB)+"&_query_only=true"); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	s.Reader = Reader{&statements{prepare: s.read.PrepareContext}}
	return s.read.PingContext(ctx)
}

// dsn has the options of every connection. _txlock is for transactions that
// database/sql begins; the writer executes BEGIN IMMEDIATE itself.
func dsn(path, mode string, cacheKiB int) string {
	v := url.Values{}
	v.Set("mode", mode)
	v.Set("_txlock", "immediate")
	v.Set("_mutex", "no") // database/sql uses a connection from one goroutine at a time
	v.Set("_synchronous", "FULL")
	v.Set("_foreign_keys", "true")
	v.Set("_busy_timeout", strconv.FormatInt(busyTimeout.Milliseconds(), 10))
	v.Set("_cache_size", strconv.Itoa(-cacheKiB))
	if mode == "rw" {
		v.Set("_journal_mode", "WAL")
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: v.Encode()}).String()
}

func checkOptions(ctx context.Context, c *sql.Conn, autocheckpoint int) error {
	for _, want := range []struct{ pragma, value string }{
		{"journal_mode", "wal"},
		{"synchronous", "2"},
		{"foreign_keys", "1"},
		{"busy_timeout", strconv.FormatInt(busyTimeout.Milliseconds(), 10)},
		{"wal_autocheckpoint", strconv.Itoa(autocheckpoint)},
	} {
		var got string
		if err := c.QueryRowContext(ctx, "PRAGMA "+want.pragma).Scan(&got); err != nil {
			return fmt.Errorf("read back %s: %w", want.pragma, err)
		}
		if got != want.value {
			return fmt.Errorf("option %s is %q, not %q: this SQLite or file system may lose messages",
				want.pragma, got, want.value)
		}
	}
	return nil
}

// Close finishes the queued writes, then closes the file. Later writes return
// ErrClosed.
func (s *Store) Close() error {
	s.closing.Lock()
	if s.closed {
		s.closing.Unlock()
		return nil
	}
	s.closed = true
	close(s.jobs)
	s.closing.Unlock()
	<-s.done
	return s.closeHandles()
}

func (s *Store) closeHandles() error {
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	for _, db := range []*sql.DB{s.writer, s.read} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.close())
	}
	return errors.Join(errs...)
}

// Reader carries the reading verbs. A Store reads from its pool and returns the
// context's error if that ends; a Tx reads within its transaction to the end.
type Reader struct{ q *statements }

// statements prepares each query once.
//
// The driver never gets a context that can end: for one it starts a goroutine
// per row, which costs a third of a short read. Every statement is short, so
// the context is checked before it and between its rows.
type statements struct {
	prepare     func(context.Context, string) (*sql.Stmt, error)
	uncancelled bool     // in a transaction: the end of a caller's context stops no read
	cache       sync.Map // query → *sql.Stmt
}

func (p *statements) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := p.cache.Load(query); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := p.prepare(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	if other, loaded := p.cache.LoadOrStore(query, st); loaded {
		_ = st.Close()
		return other.(*sql.Stmt), nil
	}
	return st, nil
}

// ended returns the context's error if reads are to stop for it.
func (p *statements) ended(ctx context.Context) error {
	if p.uncancelled {
		return nil
	}
	return ctx.Err()
}

// exec runs a statement that writes.
func (p *statements) exec(query string, args ...any) (sql.Result, error) {
	st, err := p.stmt(uncancelled(), query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(uncancelled(), args...)
}

// each calls row for every row of a query, until row returns false or an error.
func (p *statements) each(ctx context.Context, row func(scan scanner) (more bool, err error), query string, args ...any) error {
	if err := p.ended(ctx); err != nil {
		return err
	}
	driver := context.WithoutCancel(ctx)
	st, err := p.stmt(driver, query)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(driver, args...)
	if err != nil {
		return err
	}
	defer rows.Close()

	for more := true; more && rows.Next(); {
		if err := p.ended(ctx); err != nil {
			return err
		}
		if more, err = row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// get scans one row into dest and reports whether there was one.
func (p *statements) get(ctx context.Context, dest []any, query string, args ...any) (bool, error) {
	if err := p.ended(ctx); err != nil {
		return false, err
	}
	driver := context.WithoutCancel(ctx)
	st, err := p.stmt(driver, query)
	if err != nil {
		return false, err
	}
	switch err := st.QueryRowContext(driver, args...).Scan(dest...); {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// scanner is the Scan method of a row.
type scanner = func(dest ...any) error

// collect scans every row of a query with scan.
func collect[T any](ctx context.Context, p *statements, scan func(scanner) (T, error), query string, args ...any) (all []T, err error) {
	err = p.each(ctx, func(row scanner) (bool, error) {
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

// one is the scan of a single column.
func one[T any](scan scanner) (v T, err error) {
	err = scan(&v)
	return v, err
}
