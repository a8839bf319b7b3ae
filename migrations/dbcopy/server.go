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
	"github.com/jackc/pgx/v5/stdlib"

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

func openServer(ctx context.Context, database string) (*database, error) {
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
	// a pooler refuses them as parameters of the start
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		// whatever the role has: a statement of a copy may take minutes
		return conn.Exec(ctx, `SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; `+
			`SET lock_timeout = 0`).Close()
	}
	d, err := connect(ctx, Name(database), true, stdlib.OpenDB(*config))
	if err != nil {
		return nil, err
	}
	// A server notices at once that the process was killed, not only at the end of a statement. Postgres 13 cannot.
	_ = d.run(ctx, `SET client_connection_check_interval = '1s'`)
	if err := migrations.CheckServer(ctx, d.conn); err != nil {
		d.close()
		if errors.Is(err, migrations.ErrServer) { // the store cannot use it
			err = refuse("%s: %w", d.name, err)
		}
		return nil, err
	}
	return d, nil
}

// beginServer keeps all others from writing until close, and begins a transaction that reads the database as it is
// then.
func (d *database) beginServer(ctx context.Context) error {
	if err := d.requireIdle(ctx); err != nil {
		return err
	}
	// the lock of the store's writers
	err := d.run(ctx, `SET lock_timeout = `+strconv.FormatInt(lockWait.Milliseconds(), 10),
		`SELECT pg_advisory_lock(hashtext('arizuko.write'))`)
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == lockNotAvailable {
		return fmt.Errorf("%w: another process writes to %s, or a copy that was ended is rolled back: run it again",
			ErrRunning, d.name)
	}
	if err != nil {
		return err
	}
	return d.run(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ`)
}

// beginSnapshot begins a transaction that others do not notice.
func (d *database) beginSnapshot(ctx context.Context) error {
	if err := d.run(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
		return err
	}
	if err := d.requireSchema(ctx); err != nil {
		return err
	}
	moved, err := migrations.Moved(ctx, d.conn)
	if err == nil && moved != "" {
		err = refuse("%s was copied to %s: its rows are old", d.name, moved)
	}
	return err
}

// requireIdle returns an ErrRunning if a daemon or one of its commands uses a server's database.
func (d *database) requireIdle(ctx context.Context) error {
	if !d.server {
		return nil
	}
	var processes *string
	if migrated, err := d.has(ctx, "processes"); err != nil {
		return err
	} else if migrated {
		err := d.scan(ctx, `SELECT string_agg(daemon || ' on ' || place, ', ' ORDER BY daemon) FROM processes
			WHERE until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint`, nil, &processes)
		if err != nil {
			return err
		}
	}
	if processes != nil {
		return fmt.Errorf("%w: on %s run %s: stop them; those that were killed count for 12 s more", ErrRunning, d.name,
			*processes)
	}
	var connections int
	err := d.scan(ctx,
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ ('^' || $1::text || '(/[0-9]+)?$')
		AND pid <> pg_backend_pid()`, []any{daemonName}, &connections)
	if err == nil && connections > 0 {
		err = fmt.Errorf("%w: %s has %d connections of daemons or their commands: stop them all, on all machines",
			ErrRunning, d.name, connections)
	}
	return err
}

// prepareServer makes the schema unless it is there. It does nothing more if there are rows.
func (d *database) prepareServer(ctx context.Context, tables []table) (filled bool, err error) {
	var others int
	if err := d.scan(ctx,
		`SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm') AND relnamespace = current_schema()::regnamespace`,
		nil, &others); err != nil {
		return false, err
	}
	switch migrated, err := d.has(ctx, "schema_migrations"); {
	case err != nil:
		return false, err
	case migrated:
		if err := d.requireSchema(ctx); err != nil {
			return false, err
		}
	case others > 0:
		return false, refuse("%s has tables of another program: name an empty database", d.name)
	default:
		if err := d.makeSchema(ctx); err != nil {
			return false, err
		}
	}
	moved, err := migrations.Moved(ctx, d.conn)
	if err == nil && moved != "" {
		err = refuse("%s was copied to %s, its rows are old: name an empty database, or make it again by DROP "+
			"DATABASE and CREATE DATABASE", d.name, moved)
	}
	if err != nil {
		return false, err
	}
	if filled, err := d.hasRows(ctx, tables); err != nil || filled {
		return filled, err
	}
	var triggers []string
	for _, t := range tables {
		triggers = append(triggers, "ALTER TABLE "+quote(t.name)+" DISABLE TRIGGER USER")
	}
	// References first: an index may be of use to one.
	err = d.unload(ctx,
		`SELECT 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || quote_ident(conname),
			'ALTER TABLE ' || conrelid::regclass || ' ADD CONSTRAINT ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid)
		FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace
		UNION ALL SELECT 'DROP INDEX ' || i.indexrelid::regclass, pg_get_indexdef(i.indexrelid)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = current_schema()::regnamespace AND c.relname <> 'message_search'
		AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))`,
		triggers...)
	for _, disabled := range triggers {
		d.undo = append(d.undo, strings.Replace(disabled, "DISABLE", "ENABLE", 1))
	}
	return false, err
}
