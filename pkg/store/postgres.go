package store

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

// postgres is the engine of a Postgres server. All processes write one after the other, under an advisory lock that
// ends with the transaction: so ids grow in the order of commits, and a verb reads what the one before has left.
type postgres struct {
	writer  *pgx.ConnConfig
	read    *sql.DB
	renewer *sql.DB       // of one connection
	st      *statements   // of the connection that writes; nil when it is lost, until the next transaction
	timeout time.Duration // of the wait for other writers
	process int64         // see Store.SetProcess
	closed  chan struct{}

	// mark names the row of counters that each transaction of this process sets to its number, count.
	mark  string
	count int64
}

func openPostgres(ctx context.Context, o Options) (engine, error) {
	config, err := postgresConfig(o.Path)
	if err != nil {
		return nil, err
	}
	e := &postgres{
		writer: writing(config), read: openPool(reading(config), readers), renewer: openPool(writing(config), 1),
		closed: make(chan struct{}), mark: newMark(time.Now()),
	}
	err = e.connect(ctx)
	if err == nil {
		err = e.putMark(ctx)
	}
	if err != nil {
		_ = e.close()
		return nil, err
	}
	return e, nil
}

// connect opens the connection that writes.
func (e *postgres) connect(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, e.writer)
	if err != nil {
		return err
	}
	adaptTypes(conn)
	e.st = &statements{dialect: e, uncancelled: true, pipe: &pipeline{conn: conn}}
	return nil
}

// disconnect gives up a connection that is lost.
func (e *postgres) disconnect() {
	if e.st != nil {
		_ = e.st.pipe.conn.PgConn().Conn().Close()
		e.st = nil
	}
}

// run runs statements in one round trip and returns the first column of the last row.
func (e *postgres) run(statements string) (value string, err error) {
	return e.runContext(context.Background(), statements)
}

func (e *postgres) runContext(ctx context.Context, statements string) (value string, err error) {
	results, err := e.st.pipe.conn.PgConn().Exec(ctx, statements).ReadAll()
	for _, result := range results {
		if value = result.CommandTag.String(); len(result.Rows) > 0 {
			value = string(result.Rows[0][0])
		}
	}
	return value, err
}

// arguments removes from texts what Postgres refuses: NUL, and bytes that are no UTF-8.
func (e *postgres) arguments(args []any) []any {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = CleanText(text)
		}
	}
	return args
}

func (e *postgres) readers() *sql.DB { return e.read }

func (e *postgres) insert(st *statements, query string, args []any) (id int64, inserted bool, err error) {
	inserted, err = st.get(context.Background(), []any{&id}, query+" RETURNING id", args...)
	return id, inserted, err
}

func (e *postgres) begin(timeout time.Duration, process int64, waited func()) (*statements, error) {
	if e.st == nil || e.st.pipe.conn.IsClosed() {
		e.disconnect()
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := e.connect(ctx); err != nil {
			waited()
			return nil, err
		}
	}
	e.timeout, e.process = timeout, process
	e.st.pipe.begin(waited, e.opening()...)
	return e.st, nil
}

// opening is what begins a transaction: it waits for those of others, sets the mark, and fails if the process is
// fenced.
func (e *postgres) opening() []statement {
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

func (e *postgres) restart(st *statements) error {
	if err := st.pipe.usable(); err != nil {
		return err
	}
	if st.pipe.inTransaction() {
		if err := st.pipe.run("ROLLBACK"); err != nil {
			return err
		}
	}
	st.pipe.begin(func() {}, e.opening()...)
	return nil
}

func (e *postgres) next() int64 {
	e.count++
	return e.count
}

// errRolledBack means that the server has ended a transaction by itself.
var errRolledBack = errors.New("the server has rolled the transaction back")

func (e *postgres) commit(st *statements, poked []string) error {
	if statement := notify(poked); statement != "" {
		st.pipe.queue(statement)
	}
	tag, err := st.pipe.commit()
	var refused *pgconn.PgError
	switch {
	case err == nil && tag == "COMMIT":
		return nil
	case err == nil:
		return errRolledBack
	case errors.As(err, &refused) && refused.SeverityUnlocalized != "FATAL":
		e.rollback(st)
		return err
	}
	return e.resolve(err)
}

func (e *postgres) rollback(st *statements) {
	if !st.pipe.inTransaction() {
		return
	}
	if err := st.pipe.run("ROLLBACK"); err != nil {
		e.disconnect()
	}
}

// renew does not begin as other transactions do: nothing reads the time of a lease in a cursor, and a process that
// takes over deletes the row only once the time has passed, under the row's lock.
func (e *postgres) renew(ctx context.Context, process int64) (renewed bool, err error) {
	result, err := e.renewer.ExecContext(ctx, e.translate(updateRenewed),
		e.arguments([]any{process, LeaseTime.Milliseconds()})...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// snapshotVersion is the text of a snapshot: it names the transactions that are under way and the next one.
type snapshotVersion struct{ db *sql.DB }

func (e *postgres) watch(context.Context) (versionReader, error) { return snapshotVersion{e.read}, nil }

func (v snapshotVersion) version(ctx context.Context) (version string, err error) {
	err = v.db.QueryRowContext(ctx, "SELECT pg_current_snapshot()::text").Scan(&version)
	return version, err
}

func (snapshotVersion) Close() error { return nil } // the pool is the store's

func (e *postgres) giveUp() { close(e.closed) }

func (e *postgres) close() error {
	if e.st != nil {
		e.removeMark()
		e.disconnect()
	}
	return errors.Join(e.read.Close(), e.renewer.Close())
}
