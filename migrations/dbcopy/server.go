package dbcopy

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"arizuko/migrations"
)

const (
	// applicationName tells a copy's connection from those of daemons and their commands, which are daemonName's.
	applicationName, daemonName = "arizuko migrate", "arizuko"
	// lockWait is how long a copy waits until no other process writes: a copy that was killed is rolled back by then.
	lockWait    = 20 * time.Second
	dialTimeout = 15 * time.Second
	// lockNotAvailable is the code of Postgres for a lock_timeout that has passed.
	lockNotAvailable = "55P03"
)

// IsServer reports whether a database is named by a URL, as opposed to a file's path.
func IsServer(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// Name is a server's URL without password and options.
func Name(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return "the server"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	host := u.Query().Get("host")
	u.RawQuery, u.Fragment = "", ""
	if u.Host == "" && host != "" {
		u.RawQuery = url.Values{"host": {host}}.Encode() // of a socket
	}
	return u.String()
}

// server is a database of a Postgres server.
type server struct {
	name string // without the password
	conn *pgx.Conn
	undo []string // statements that make what prepare has dropped
}

func openServer(ctx context.Context, database string) (*server, error) {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err) // without the password
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = dialTimeout
	}
	if config.ValidateConnect == nil { // not a standby
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.RuntimeParams["application_name"] = applicationName
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error { // a pooler refuses them as parameters of the start
		// whatever the role has: a statement of a copy may take minutes
		return conn.Exec(ctx, `SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = 0`).Close()
	}
	s := &server{name: Name(database)}
	if s.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	// A server notices at once that the process was killed, not only at the end of a statement. Postgres 13 cannot.
	_, _ = s.conn.Exec(ctx, `SET client_connection_check_interval = '1s'`)
	if err := s.check(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// check returns an ErrRefused if the store cannot use the server.
func (s *server) check(ctx context.Context) error {
	var encoding string
	var version int
	if err := s.conn.QueryRow(ctx, migrations.QueryServer).Scan(&encoding, &version); err != nil {
		return err
	}
	if err := migrations.CheckVersion(encoding, version); err != nil {
		return refuse("%s: %w", s.name, err)
	}
	return nil
}

func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	_ = s.conn.Close(ctx) // the server rolls back what is open
}

// begin keeps all others from writing until close, and begins a transaction that reads the database as it is then.
func (s *server) begin(ctx context.Context) error {
	if err := s.requireIdle(ctx); err != nil {
		return err
	}
	_, err := s.conn.Exec(ctx, `SET lock_timeout = `+strconv.FormatInt(lockWait.Milliseconds(), 10))
	if err == nil {
		// the lock of the store's writers
		_, err = s.conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext('arizuko.write'))`)
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == lockNotAvailable {
		return fmt.Errorf("%w: another process writes to %s, or a copy that was ended is rolled back: run it again",
			ErrRunning, s.name)
	}
	if err != nil {
		return err
	}
	_, err = s.conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ`)
	return err
}

// beginSnapshot begins a transaction that others do not notice.
func (s *server) beginSnapshot(ctx context.Context) error {
	if _, err := s.conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
		return err
	}
	if err := s.requireSchema(ctx); err != nil {
		return err
	}
	moved, err := s.moved(ctx)
	if err == nil && moved != "" {
		err = refuse("%s was copied to %s: its rows are old", s.name, moved)
	}
	return err
}

// requireIdle returns an ErrRunning if a daemon or one of its commands uses the database.
func (s *server) requireIdle(ctx context.Context) error {
	var processes *string
	if migrated, err := s.has(ctx, "processes"); err != nil {
		return err
	} else if migrated {
		err := s.conn.QueryRow(ctx, `SELECT string_agg(daemon || ' on ' || place, ', ' ORDER BY daemon) FROM processes
			WHERE until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint`).Scan(&processes)
		if err != nil {
			return err
		}
	}
	if processes != nil {
		return fmt.Errorf("%w: on %s run %s: stop them; those that were killed count for 12 s more", ErrRunning, s.name,
			*processes)
	}
	var connections int
	err := s.conn.QueryRow(ctx,
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ ('^' || $1 || '(/[0-9]+)?$')
		AND pid <> pg_backend_pid()`, daemonName).Scan(&connections)
	if err == nil && connections > 0 {
		err = fmt.Errorf("%w: %s has %d connections of daemons or their commands: stop them all, on all machines",
			ErrRunning, s.name, connections)
	}
	return err
}

// has reports whether there is a table.
func (s *server) has(ctx context.Context, table string) (exists bool, err error) {
	err = s.conn.QueryRow(ctx,
		`SELECT EXISTS (SELECT 1 FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
		AND relname = $1)`, table).Scan(&exists)
	return exists, err
}

func (s *server) requireSchema(ctx context.Context) error {
	migrated, err := s.has(ctx, "schema_migrations")
	if err != nil {
		return err
	}
	if !migrated {
		return refuse("%s is not migrated: run `migrate up`, or name another database", s.name)
	}
	var version int
	var dirty bool
	if err := s.conn.QueryRow(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty); err != nil {
		return err
	}
	return requireSchema(s.name, version, dirty)
}

func (s *server) moved(ctx context.Context) (to string, err error) {
	err = s.conn.QueryRow(ctx, migrations.QueryMoved).Scan(&to)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return to, err
}

// mark ends the transaction: daemons start on the database no more.
func (s *server) mark(ctx context.Context, moved string) error {
	if _, err := s.conn.Exec(ctx, migrations.PutMoved, moved); err != nil {
		return err
	}
	return s.commit(ctx)
}

func (s *server) reopen(ctx context.Context) (moved string, err error) {
	if err := s.requireSchema(ctx); err != nil {
		return "", err
	}
	if moved, err = s.moved(ctx); err == nil {
		_, err = s.conn.Exec(ctx, migrations.DropMoved)
	}
	return moved, err
}

func (s *server) commit(ctx context.Context) error {
	tag, err := s.conn.Exec(ctx, "COMMIT")
	if err == nil && tag.String() != "COMMIT" {
		err = errors.New("the server has rolled the transaction back")
	}
	return err
}

func (s *server) read(ctx context.Context, t table) (rows, error) {
	return s.conn.Query(ctx, t.selection())
}

func (s *server) count(ctx context.Context, t table) (n int64, err error) {
	err = s.conn.QueryRow(ctx, "SELECT count(*) FROM "+quote(t.name)+t.condition()).Scan(&n)
	return n, err
}

func (s *server) lastID(ctx context.Context, t table) (id int64, err error) {
	sequence := ""
	if err := s.conn.QueryRow(ctx, `SELECT pg_get_serial_sequence($1, 'id')`,
		quote(t.name)).Scan(&sequence); err != nil {
		return 0, err
	}
	err = s.conn.QueryRow(ctx,
		`SELECT greatest(q.last_value - CASE WHEN q.is_called THEN 0 ELSE 1 END, (SELECT max(id) FROM `+quote(t.name)+
			`), 0)
		FROM `+sequence+` q`).Scan(&id)
	return id, err
}

// prepare makes the schema unless it is there, drops indexes, references and the rows that the schema comes with, and
// disables triggers. It does nothing if there are other rows.
func (s *server) prepare(ctx context.Context, tables []table) (hasRows bool, err error) {
	var others int
	if err := s.conn.QueryRow(ctx,
		`SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm') AND relnamespace = current_schema()::regnamespace`).
		Scan(&others); err != nil {
		return false, err
	}
	switch migrated, err := s.has(ctx, "schema_migrations"); {
	case err != nil:
		return false, err
	case migrated:
		if err := s.requireSchema(ctx); err != nil {
			return false, err
		}
	case others > 0:
		return false, refuse("%s has tables of another program: name an empty database", s.name)
	default:
		if err := s.makeSchema(ctx); err != nil {
			return false, err
		}
	}
	if hasRows, err = s.hasRows(ctx, tables); err != nil || hasRows {
		return hasRows, err
	}
	return false, s.unload(ctx, tables)
}

func (s *server) makeSchema(ctx context.Context) error {
	steps, err := migrations.Postgres()
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := s.run(ctx, step.SQL); err != nil {
			return fmt.Errorf("make the schema in %s: %w", s.name, err)
		}
	}
	return s.run(ctx, `CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL);
		INSERT INTO schema_migrations VALUES (`+strconv.Itoa(migrations.Latest())+`, false)`)
}

// run runs statements, which may be several.
func (s *server) run(ctx context.Context, statements string) error {
	_, err := s.conn.PgConn().Exec(ctx, statements).ReadAll()
	return err
}

func (s *server) hasRows(ctx context.Context, tables []table) (found bool, err error) {
	if moved, err := s.moved(ctx); err != nil || moved != "" {
		if err == nil {
			err = refuse("%s was copied to %s, its rows are old: name an empty database, or make it again by DROP DATABASE and CREATE DATABASE", s.name, moved)
		}
		return false, err
	}
	for _, t := range tables {
		if t.name == "counters" || found {
			continue
		}
		if err := s.conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM "+quote(t.name)+t.condition()+
			")").Scan(&found); err != nil {
			return false, err
		}
	}
	return found, nil
}

// unload drops what slows loading down, or would change what is loaded.
func (s *server) unload(ctx context.Context, tables []table) error {
	drop := []string{"DELETE FROM counters"}
	// References first: an index may be of use to one.
	found, err := s.conn.Query(ctx,
		`SELECT 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || quote_ident(conname),
			'ALTER TABLE ' || conrelid::regclass || ' ADD CONSTRAINT ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid)
		FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace
		UNION ALL SELECT 'DROP INDEX ' || i.indexrelid::regclass, pg_get_indexdef(i.indexrelid)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = current_schema()::regnamespace AND c.relname <> 'message_search'
		AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))`)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var down, up string
		if err := found.Scan(&down, &up); err != nil {
			return err
		}
		drop, s.undo = append(drop, down), append(s.undo, up)
	}
	if err := found.Err(); err != nil {
		return err
	}
	for _, t := range tables {
		drop = append(drop, "ALTER TABLE "+quote(t.name)+" DISABLE TRIGGER USER")
		s.undo = append(s.undo, "ALTER TABLE "+quote(t.name)+" ENABLE TRIGGER USER")
	}
	return s.run(ctx, strings.Join(drop, ";\n"))
}

func (s *server) load(ctx context.Context, t table, all rows) error {
	_, err := s.conn.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, all)
	return err
}

// setLastID is part of the transaction, unlike setval.
func (s *server) setLastID(ctx context.Context, t table, id int64) error {
	return s.run(ctx, "ALTER TABLE "+quote(t.name)+" ALTER COLUMN id RESTART WITH "+strconv.FormatInt(id+1, 10))
}

// complete makes again what prepare has dropped: the server checks the references.
func (s *server) complete(ctx context.Context, progress func(done, total int) error) error {
	for i, statement := range s.undo {
		if err := s.run(ctx, statement); err != nil {
			return fmt.Errorf("%.80s: %w", statement, err)
		}
		if err := progress(i+1, len(s.undo)); err != nil {
			return err
		}
	}
	return s.run(ctx, "ANALYZE")
}
