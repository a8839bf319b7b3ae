// Package pg runs a database on a Postgres server: its connections, transactions in few round trips, commits whose end
// a lost connection did not say, pokes, and statements in the words of SQLite.
package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	resolvePause   = 200 * time.Millisecond
	writerLockName = "arizuko.write"
	scopeLockName  = "arizuko.scope"
	lateLockName   = "arizuko.late"
	// scopeLocks is how many locks stand for all keys of scopes: the server has room for several thousand.
	scopeLocks = 1024
)

// DB is a database on a Postgres server.
//
// A transaction that says what it touches, by its scope, excludes only those that touch the same: it shares one
// advisory lock with all others and has one for each of its keys. One without a scope has the first lock alone. So rows
// of one key, such as a chat, get their ids in the order of commits, and a write reads the rows of the one before; those
// of different keys may become visible in another order than that of their ids.
type DB struct {
	writing *pgx.ConnConfig
	read    *sql.DB
	renewer *sql.DB // of one connection
	writers []*Writer
	closed  chan struct{}
}

// Writer runs one transaction after the other, on a connection of its own, which it opens when it is needed first.
type Writer struct {
	db      *DB
	pipe    *Pipeline     // nil when the connection is lost, until the next transaction
	timeout time.Duration // of the wait for other writers
	process int64         // see Begin
	scope   []string

	// mark names the row of counters that each transaction of this writer sets to its number, count.
	mark   string
	marked bool // it is there
	count  int64

	used  time.Time // when it began a transaction last
	waits time.Time // until then it does not look for room, see Begin
}

// Open connects to a server, with a number of connections that read, and of writers.
func Open(ctx context.Context, url string, readers, writers int) (*DB, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	db := &DB{
		writing: writing(config), read: openPool(reading(config), readers), renewer: openPool(writing(config), 1),
		closed: make(chan struct{}),
	}
	for range writers {
		db.writers = append(db.writers, &Writer{db: db, mark: newMark(time.Now())})
	}
	err = db.writers[0].connect(ctx)
	if err == nil {
		err = db.writers[0].removeOldMarks(ctx)
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// connect opens the connection, and puts the mark there when it is the first one.
func (w *Writer) connect(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, w.db.writing)
	if err != nil {
		return err
	}
	adaptTypes(conn)
	w.pipe = &Pipeline{conn: conn}
	if !w.marked {
		if err := w.putMark(ctx); err != nil {
			w.disconnect() // resolve relies on the mark
			return err
		}
		w.marked = true
	}
	return nil
}

// disconnect gives up a connection that is lost.
func (w *Writer) disconnect() {
	if w.pipe != nil {
		_ = w.pipe.conn.PgConn().Conn().Close()
		w.pipe = nil
	}
}

// run runs statements in one round trip and returns the first column of the last row.
func (w *Writer) run(statements string) (value string, err error) {
	return w.runContext(context.Background(), statements)
}

func (w *Writer) runContext(ctx context.Context, statements string) (value string, err error) {
	results, err := w.pipe.conn.PgConn().Exec(ctx, statements).ReadAll()
	for _, result := range results {
		if value = result.CommandTag.String(); len(result.Rows) > 0 {
			value = string(result.Rows[0][0])
		}
	}
	return value, err
}

// Readers is the pool of connections that read.
func (db *DB) Readers() *sql.DB { return db.read }

// Writers are independent of each other. Each is for one goroutine.
func (db *DB) Writers() []*Writer { return db.writers }

// Begin begins a transaction, of a process that must not be fenced unless it is 0; waited is called once the wait for
// other writers, of at most timeout, has ended. The transaction touches only what belongs to the keys of scope; with a
// nil one it may touch anything. A writer but the first returns ErrNoRoom, and does not call waited, if it has no
// connection and cannot make one, or the server has too few that are free.
func (w *Writer) Begin(timeout time.Duration, process int64, scope []string, waited func()) (*Pipeline, error) {
	if err := w.ready(timeout); err != nil {
		if w != w.db.writers[0] {
			if now := time.Now(); w.waits.Before(now) {
				w.waits = now.Add(roomPause)
			}
			return nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
		}
		waited()
		return nil, err
	}
	w.timeout, w.process, w.scope = timeout, process, scope
	w.pipe.begin(waited, w.opening()...)
	return w.pipe, nil
}

// ready makes a connection, unless there is one that was used just now or still answers.
func (w *Writer) ready(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	idle := time.Since(w.used) > maxIdle
	w.used = time.Now()
	if w.pipe != nil && !w.pipe.conn.IsClosed() && (!idle || w.pipe.conn.Ping(ctx) == nil) {
		return nil
	}
	w.disconnect()
	if err := w.findRoom(ctx); err != nil {
		return err
	}
	return w.connect(ctx)
}

// ErrNoRoom means that the first writer is to do the work of another.
var ErrNoRoom = errors.New("the database server has few connections left")

const (
	// roomPause is how long a writer waits after it could make no connection.
	roomPause = 10 * time.Second
	// maxIdle is how long a connection is unused before a writer asks whether it is still there: each writer would lose a
	// transaction after the server was restarted.
	maxIdle = 5 * time.Second
)

// queryRoom reports whether more than a third is free of what the server, the role and the database may have.
const queryRoom = `SELECT 3 * a.n < 2 * (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int)
	AND (r.rolconnlimit < 0 OR 3 * a.own < 2 * r.rolconnlimit) AND (d.datconnlimit < 0 OR 3 * a.here < 2 * d.datconnlimit)
	FROM (SELECT count(*) AS n, count(*) FILTER (WHERE usename = current_user) AS own,
		count(*) FILTER (WHERE datname = current_database()) AS here FROM pg_stat_activity) a, pg_roles r, pg_database d
	WHERE r.rolname = current_user AND d.datname = current_database()`

// findRoom returns ErrNoRoom if the writer, which is not the first, should make no connection now.
func (w *Writer) findRoom(ctx context.Context) error {
	if w == w.db.writers[0] {
		return nil
	}
	if time.Now().Before(w.waits) {
		return ErrNoRoom
	}
	room := false
	err := w.db.read.QueryRowContext(ctx, queryRoom).Scan(&room)
	if err == nil && !room {
		err = ErrNoRoom
	}
	return err
}

// opening has the statements that begin a transaction: it waits for those of others, sets the mark, and fails if the
// process is fenced.
func (w *Writer) opening() []statement {
	opening := []statement{
		{text: "BEGIN"},
		{text: "SET LOCAL lock_timeout = " + strconv.FormatInt(w.timeout.Milliseconds(), 10)},
	}
	if w.scope == nil {
		opening = append(opening, statement{text: "SELECT pg_advisory_xact_lock(hashtext('" + writerLockName + "'))"})
	} else {
		opening = append(opening, statement{text: "SELECT pg_advisory_xact_lock_shared(hashtext('" + writerLockName + "'))"})
		opening = append(opening, lockScope(w.scope)...)
	}
	opening = append(opening, statement{text: setMark, args: []any{w.mark, w.next()}})
	if w.process != 0 {
		opening = append(opening, statement{text: "SELECT require_process($1)", args: []any{w.process}})
	}
	return opening
}

// The keys of a scope that begin so are locked after all others: alone, or together with others that share the key.
const (
	Late   = "\x01"
	Shared = "\x02"
)

// lockScope takes the locks of a scope. All transactions take theirs in the same order, so that none waits for one that
// waits for it.
func lockScope(scope []string) (all []statement) {
	var early []int32
	late := map[int32]string{} // the lock's function, by key
	for _, key := range scope {
		switch {
		case strings.HasPrefix(key, Late):
			late[lockKey(key[len(Late):])] = "pg_advisory_xact_lock"
		case strings.HasPrefix(key, Shared):
			if key := lockKey(key[len(Shared):]); late[key] == "" {
				late[key] = "pg_advisory_xact_lock_shared"
			}
		default:
			early = append(early, lockKey(key))
		}
	}
	if slices.Sort(early); len(early) > 0 {
		text := "SELECT pg_advisory_xact_lock(hashtext('" + scopeLockName + "'), key) FROM unnest($1::int[]) key"
		all = append(all, statement{text: text, args: []any{slices.Compact(early)}})
	}
	for _, key := range slices.Sorted(maps.Keys(late)) {
		all = append(all, statement{text: "SELECT " + late[key] + "(hashtext('" + lateLockName + "'), $1)", args: []any{key}})
	}
	return all
}

func lockKey(key string) int32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	return int32(hash.Sum32() % scopeLocks)
}

// Restart rolls the transaction back and begins it again.
func (w *Writer) Restart() error {
	if err := w.pipe.usable(); err != nil {
		return err
	}
	if w.pipe.inTransaction() {
		if err := w.pipe.run("ROLLBACK"); err != nil {
			return err
		}
	}
	w.pipe.begin(func() {}, w.opening()...)
	return nil
}

func (w *Writer) next() int64 {
	w.count++
	return w.count
}

// ErrRolledBack means that the server has ended a transaction by itself.
var ErrRolledBack = errors.New("the server has rolled the transaction back")

// Commit ends the transaction, and pokes daemons once it is visible: within the transaction, a poke would make all that
// poke commit one after the other. Without an error its writes are on the server's disk, with one they never will be.
func (w *Writer) Commit(poked []string) error {
	tag, err := w.pipe.commit(notify(poked))
	var refused *pgconn.PgError
	var unexpected unexpectedError
	switch {
	case tag == "COMMIT":
		return nil
	case err == nil:
		return ErrRolledBack
	case errors.As(err, &refused) && refused.SeverityUnlocalized != "FATAL", errors.As(err, &unexpected):
		w.Rollback()
		return err
	}
	return w.resolve(err)
}

// Rollback ends the transaction without its writes.
func (w *Writer) Rollback() {
	if w.pipe == nil || !w.pipe.inTransaction() {
		return
	}
	if err := w.pipe.run("ROLLBACK"); err != nil {
		w.disconnect()
	}
}

// Renew runs a statement on a connection of its own, beside the transactions, and reports whether it changed a row. It
// does not begin as they do: nothing reads the time of a lease in a cursor, and a process that takes over deletes the
// row only once the time has passed, under the row's lock.
func (db *DB) Renew(ctx context.Context, statement string, args ...any) (changed bool, err error) {
	result, err := db.renewer.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Version changes with each commit of any process: it is the text of a snapshot, which names the transactions that are
// under way and the next one.
func (db *DB) Version(ctx context.Context) (version string, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT pg_current_snapshot()::text").Scan(&version)
	return version, err
}

// GiveUp ends the attempts of Commit to find out whether the server has committed. It is called at most once.
func (db *DB) GiveUp() { close(db.closed) }

// Close closes the connections.
func (db *DB) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, w := range db.writers {
		if w.pipe != nil {
			w.removeMark(ctx)
			w.disconnect()
		}
	}
	return errors.Join(db.read.Close(), db.renewer.Close())
}
