// Package pg runs a database on a Postgres server: its connections, transactions in few round trips, commits whose end
// a lost connection did not say, pokes, and statements in the words of SQLite.
package pg

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	resolvePause   = 200 * time.Millisecond
	writerLockName = "arizuko.write"
)

// DB is a database on a Postgres server. All processes write one after the other, under an advisory lock that
// ends with the transaction: so ids grow in the order of commits, and a write reads the rows of the one before.
type DB struct {
	writer  *pgx.ConnConfig
	read    *sql.DB
	renewer *sql.DB       // of one connection
	pipe    *Pipeline     // of the connection that writes; nil when it is lost, until the next transaction
	timeout time.Duration // of the wait for other writers
	process int64         // see Begin
	closed  chan struct{}

	// mark names the row of counters that each transaction of this process sets to its number, count.
	mark  string
	count int64
}

// Open connects to a server, with a number of connections that read.
func Open(ctx context.Context, url string, readers int) (*DB, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	e := &DB{
		writer: writing(config), read: openPool(reading(config), readers), renewer: openPool(writing(config), 1),
		closed: make(chan struct{}), mark: newMark(time.Now()),
	}
	err = e.connect(ctx)
	if err == nil {
		err = e.putMark(ctx)
	}
	if err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// connect opens the connection that writes.
func (e *DB) connect(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, e.writer)
	if err != nil {
		return err
	}
	adaptTypes(conn)
	e.pipe = &Pipeline{conn: conn}
	return nil
}

// disconnect gives up a connection that is lost.
func (e *DB) disconnect() {
	if e.pipe != nil {
		_ = e.pipe.conn.PgConn().Conn().Close()
		e.pipe = nil
	}
}

// run runs statements in one round trip and returns the first column of the last row.
func (e *DB) run(statements string) (value string, err error) {
	return e.runContext(context.Background(), statements)
}

func (e *DB) runContext(ctx context.Context, statements string) (value string, err error) {
	results, err := e.pipe.conn.PgConn().Exec(ctx, statements).ReadAll()
	for _, result := range results {
		if value = result.CommandTag.String(); len(result.Rows) > 0 {
			value = string(result.Rows[0][0])
		}
	}
	return value, err
}

// Readers is the pool of connections that read.
func (e *DB) Readers() *sql.DB { return e.read }

// Begin begins a transaction, of a process that must not be fenced unless it is 0; waited is called once the wait for
// other writers, of at most timeout, has ended.
func (e *DB) Begin(timeout time.Duration, process int64, waited func()) (*Pipeline, error) {
	if e.pipe == nil || e.pipe.conn.IsClosed() {
		e.disconnect()
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := e.connect(ctx); err != nil {
			waited()
			return nil, err
		}
	}
	e.timeout, e.process = timeout, process
	e.pipe.begin(waited, e.opening()...)
	return e.pipe, nil
}

// opening has the statements that begin a transaction: it waits for those of others, sets the mark, and fails if the
// process is fenced.
func (e *DB) opening() []statement {
	opening := []statement{
		{text: "BEGIN"},
		{text: "SET LOCAL lock_timeout = " + strconv.FormatInt(e.timeout.Milliseconds(), 10)},
		{text: "SELECT pg_advisory_xact_lock(hashtext('" + writerLockName + "'))"},
		{text: setMark, args: []any{e.mark, e.next()}},
	}
	if e.process != 0 {
		opening = append(opening, statement{text: "SELECT require_process($1)", args: []any{e.process}})
	}
	return opening
}

// Restart rolls the transaction back and begins it again.
func (e *DB) Restart() error {
	if err := e.pipe.usable(); err != nil {
		return err
	}
	if e.pipe.inTransaction() {
		if err := e.pipe.run("ROLLBACK"); err != nil {
			return err
		}
	}
	e.pipe.begin(func() {}, e.opening()...)
	return nil
}

func (e *DB) next() int64 {
	e.count++
	return e.count
}

// ErrRolledBack means that the server has ended a transaction by itself.
var ErrRolledBack = errors.New("the server has rolled the transaction back")

// Commit ends the transaction and pokes daemons with it. Without an error its writes are on the server's disk, with one
// they never will be.
func (e *DB) Commit(poked []string) error {
	if statement := notify(poked); statement != "" {
		e.pipe.queue(statement)
	}
	tag, err := e.pipe.commit()
	var refused *pgconn.PgError
	switch {
	case err == nil && tag == "COMMIT":
		return nil
	case err == nil:
		return ErrRolledBack
	case errors.As(err, &refused) && refused.SeverityUnlocalized != "FATAL":
		e.Rollback()
		return err
	}
	return e.resolve(err)
}

// Rollback ends the transaction without its writes.
func (e *DB) Rollback() {
	if e.pipe == nil || !e.pipe.inTransaction() {
		return
	}
	if err := e.pipe.run("ROLLBACK"); err != nil {
		e.disconnect()
	}
}

// Renew runs a statement on a connection of its own, beside the transactions, and reports whether it changed a row. It
// does not begin as they do: nothing reads the time of a lease in a cursor, and a process that takes over deletes the
// row only once the time has passed, under the row's lock.
func (e *DB) Renew(ctx context.Context, statement string, args ...any) (changed bool, err error) {
	result, err := e.renewer.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Version changes with each commit of any process: it is the text of a snapshot, which names the transactions that are
// under way and the next one.
func (e *DB) Version(ctx context.Context) (version string, err error) {
	err = e.read.QueryRowContext(ctx, "SELECT pg_current_snapshot()::text").Scan(&version)
	return version, err
}

// GiveUp ends the attempts of Commit to find out whether the server has committed. It is called at most once.
func (e *DB) GiveUp() { close(e.closed) }

// Close closes the connections.
func (e *DB) Close() error {
	if e.pipe != nil {
		e.removeMark()
		e.disconnect()
	}
	return errors.Join(e.read.Close(), e.renewer.Close())
}
