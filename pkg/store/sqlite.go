package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // the database/sql driver
)

// sqlite is the engine of a database file.
type sqlite struct {
	path  string
	write *sql.DB
	read  *sql.DB
	conn  *sql.Conn // of write
	lock  *writeLock
	st    *statements // of conn
}

// growHeap makes glibc keep the memory that SQLite frees. A connection frees its cached pages whenever another one has
// written, which with several daemons is before almost every transaction. By default glibc gives the memory back to the
// kernel, and the next transaction waits while the kernel fills it with zeros again: about 44 page faults for a message.
// Once a program has freed a large block, each of glibc's arenas keeps up to twice its size, and there are eight arenas
// per processor. So the block is no larger than it needs to be: with 512 KiB there is one fault for a message.
const growHeap = `SELECT length(hex(zeroblob(262144)))`

// keepFreed runs growHeap once in a process.
var keepFreed sync.Once

func openSQLite(ctx context.Context, o Options) (engine, error) {
	e := &sqlite{path: o.Path}
	if err := e.open(ctx, o); err != nil {
		_ = e.close()
		return nil, err
	}
	return e, nil
}

func (e *sqlite) open(ctx context.Context, o Options) (err error) {
	if e.lock, err = openWriteLock(o.Path + ".writelock"); err != nil {
		return err
	}
	if e.write, err = sql.Open("sqlite3", dsn(o.Path, "rw", writerCacheKiB)); err != nil {
		return err
	}
	e.write.SetMaxOpenConns(1)
	if e.conn, err = e.write.Conn(ctx); err != nil {
		return err
	}
	if err = e.conn.PingContext(ctx); err != nil {
		return err
	}
	keepFreed.Do(func() { _, err = e.conn.ExecContext(ctx, growHeap) })
	if err != nil {
		return err
	}
	for _, pragma := range []string{"wal_autocheckpoint=" + strconv.Itoa(o.Autocheckpoint),
		"journal_size_limit=" + strconv.Itoa(maxIdleWAL)} {
		if _, err = e.conn.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return err
		}
	}
	if err = checkOptions(ctx, e.conn, o.Autocheckpoint); err != nil {
		return err
	}
	if e.read, err = sql.Open("sqlite3", dsn(o.Path, "ro", readerCacheKiB)+"&_query_only=true"); err != nil {
		return err
	}
	e.read.SetMaxOpenConns(readers)
	e.read.SetMaxIdleConns(readers)
	e.st = &statements{runner: &prepared{prepare: e.conn.PrepareContext, dialect: e}, dialect: e, uncancelled: true}
	return nil
}

func (e *sqlite) translate(query string) string {
	return strings.ReplaceAll(query, clock, "CAST(unixepoch('subsec') * 1000 AS INTEGER)")
}

func (e *sqlite) arguments(args []any) []any { return args }

func (e *sqlite) ordered() bool { return true }

func (e *sqlite) insert(st *statements, query string, args []any) (id int64, inserted bool, err error) {
	res, err := st.exec(query, args...)
	if err != nil {
		return 0, false, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return 0, false, err
	}
	id, err = res.LastInsertId()
	return id, err == nil, err
}

func (e *sqlite) indexRows(st *statements, after, last int64) error {
	_, err := st.exec(`INSERT INTO message_search (docid, content) SELECT id, substr(content, 1, 16384) FROM messages WHERE id > ? AND id <= ? AND content <> ''`,
		after, last)
	return err
}

// reindexRows does nothing: triggers have done it.
func (e *sqlite) reindexRows(*statements, int64) error { return nil }

func (e *sqlite) match(expression string) string { return expression }

func (e *sqlite) readers() *sql.DB { return e.read }

func (e *sqlite) renew(context.Context, int64) (bool, error) { return false, errors.ErrUnsupported }

func (e *sqlite) writers() []writer { return []writer{e} }

func (e *sqlite) begin(timeout time.Duration, process int64, _ Scope, waited func()) (*statements, error) {
	defer waited()
	if err := e.lock.acquire(timeout); err != nil {
		return nil, err
	}
	if _, err := e.st.exec("BEGIN IMMEDIATE"); err != nil {
		e.lock.release()
		return nil, err
	}
	if process == 0 {
		return e.st, nil
	}
	known, err := e.st.get(Uncancelled(), []any{new(int)}, `SELECT 1 FROM processes WHERE id = ?`, process)
	if err == nil && !known {
		err = ErrFenced
	}
	if err != nil {
		e.rollback(e.st)
		return nil, err
	}
	return e.st, nil
}

func (e *sqlite) restart(st *statements) error {
	_, _ = st.exec("ROLLBACK") // fails when SQLite has rolled back by itself
	_, err := st.exec("BEGIN IMMEDIATE")
	return err
}

func (e *sqlite) commit(st *statements, _ []string) error {
	if _, err := st.exec("COMMIT"); err != nil {
		e.rollback(st)
		return err
	}
	e.lock.release()
	return nil
}

func (e *sqlite) rollback(st *statements) {
	_, _ = st.exec("ROLLBACK") // fails when SQLite has rolled back by itself
	e.lock.release()
}

// watch reads PRAGMA data_version, which counts for a connection.
func (e *sqlite) watch(ctx context.Context) (*Watch, error) {
	db, err := sql.Open("sqlite3", dsn(e.path, "ro", 0)+"&_query_only=true")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("watch %s: %w", e.path, Explain(err))
	}
	return &Watch{
		version: func(ctx context.Context) (version string, err error) {
			err = conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
			return version, err
		},
		close: func() error { return errors.Join(conn.Close(), db.Close()) },
	}, nil
}

func (e *sqlite) giveUp() {} // a file always says whether it has committed

func (e *sqlite) close() error {
	var errs []error
	if e.conn != nil {
		errs = append(errs, e.conn.Close())
	}
	for _, db := range []*sql.DB{e.write, e.read} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if e.lock != nil {
		errs = append(errs, e.lock.close())
	}
	return errors.Join(errs...)
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
