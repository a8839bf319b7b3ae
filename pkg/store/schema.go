package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"

	"arizuko/migrations"
	"arizuko/pkg/store/pg"
)

// schemaPoll is how often a waiting daemon reads the schema's version.
const schemaPoll = 100 * time.Millisecond

// ErrSchemaRefused means that this program is too old for the database.
var ErrSchemaRefused = errors.New("this program is too old for the database: install the version that migrated it")

// ErrMoved means that the rows of the database were copied to another one, where daemons go on.
var ErrMoved = errors.New("the database was moved")

// MovedTo is the ErrMoved of a database that was copied to another one.
func MovedTo(to string) error {
	return fmt.Errorf("%w: `migrate copy` has copied it to %s; set or unset ARIZUKO_DB so that it names that one, "+
		"or run `migrate reopen` to use this one without what was stored since", ErrMoved, to)
}

// WaitSchema waits until the database at path is migrated, and not dirty, to at least version built, the one this
// program was built for. A newer schema is accepted if its compatibility floor is not above built; otherwise it returns
// ErrSchemaRefused at once, for a server that cannot be used a migrations.ErrServer, and for a database that was copied
// to another one an ErrMoved. waiting is called with each new reason to wait, in words, and the error that it comes
// from, if any. When ctx ends, its error is returned with both.
func WaitSchema(ctx context.Context, path string, built int, waiting func(reason string, cause error)) error {
	last := ""
	for {
		reason, cause, err := schemaReason(ctx, path, built)
		if err != nil || reason == "" {
			return err
		}
		if reason != last {
			waiting(reason, cause)
			last = reason
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ctx.Err(), withCause(reason, cause))
		case <-time.After(schemaPoll):
		}
	}
}

// schemaReason reads the schema's version once and returns the reason to wait, ""
// for none. The reason names no path and no error; cause does.
func schemaReason(ctx context.Context, path string, built int) (reason string, cause, err error) {
	if !IsServer(path) {
		switch _, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			return "there is no database yet: run `migrate up`", err, nil
		case err != nil:
			return errUnopened.Error(), err, nil
		}
	}
	db, err := openReading(path)
	if err != nil {
		return "", nil, err
	}
	defer db.Close()
	if IsServer(path) {
		err := migrations.CheckPooler(ctx, db)
		if err == nil {
			err = migrations.CheckServer(ctx, db)
		}
		switch {
		case errors.Is(err, migrations.ErrServer):
			return "", nil, err
		case err != nil:
			return Reason(err), err, nil
		}
	}
	var version, floor int
	var dirty bool
	err = db.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations LIMIT 1`).Scan(&version, &dirty)
	switch {
	case err != nil && !unmigrated(err):
		return Reason(err), err, nil
	case err != nil:
		return "the database is not migrated yet: run `migrate up`", err, nil
	case dirty:
		return fmt.Sprintf("migration %d is running or has failed: see the output of `migrate up`", version), nil, nil
	case version < built:
		return Schema{Version: version}.Mismatch(built).Error(), nil, nil
	}
	if err := db.QueryRowContext(ctx, `SELECT floor FROM schema_floor`).Scan(&floor); err != nil {
		return "the schema has no compatibility floor: run `migrate up`", err, nil
	}
	if err := (Schema{Version: version, Floor: floor}).Mismatch(built); err != nil {
		return "", nil, err
	}
	switch moved, err := migrations.Moved(ctx, db); {
	case err != nil:
		return Reason(err), err, nil
	case moved != "":
		return "", nil, MovedTo(moved)
	}
	return "", nil, nil
}

// unmigrated reports whether a table or row is missing, as opposed to a file that cannot be read.
func unmigrated(err error) bool {
	var se sqlite3.Error
	var answer *pgconn.PgError
	return errors.Is(err, sql.ErrNoRows) || errors.As(err, &se) && se.Code == sqlite3.ErrError ||
		errors.As(err, &answer) && answer.Code == undefinedTable
}

// undefinedTable is the code of Postgres for a table that is not there.
const undefinedTable = "42P01"

// openReading opens a database for reading: a file, or a server.
func openReading(database string) (*sql.DB, error) {
	if !IsServer(database) {
		return sql.Open("sqlite3", dsn(database, "ro", readerCacheKiB)+"&_query_only=true")
	}
	return pg.OpenReading(database, readers)
}

// dialectOf is the dialect of a database that is only read.
func dialectOf(database string) dialect {
	if IsServer(database) {
		return &server{}
	}
	return &sqlite{}
}

func withCause(reason string, cause error) string {
	if cause == nil {
		return reason
	}
	return reason + " (" + cause.Error() + ")"
}

// ReadOnly reads the database without taking any lock that a daemon waits for.
type ReadOnly struct {
	Reader
	db *sql.DB
}

// OpenReadOnly opens a database file for reading, whether daemons have it open
// or not. It must be migrated to version built at least, see WaitSchema.
func OpenReadOnly(ctx context.Context, path string, built int) (*ReadOnly, error) {
	if _, err := os.Stat(path); !IsServer(path) && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no database at %s: set ARIZUKO_DATA to the data folder, or run `migrate up`", path)
	}
	reason, cause, err := schemaReason(ctx, path, built)
	if err == nil && reason != "" {
		err = errors.New(withCause(reason, cause))
	}
	if err != nil {
		return nil, err
	}
	db, err := openReading(path)
	if err != nil {
		return nil, err
	}
	return &ReadOnly{newReader(db, dialectOf(path)), db}, nil
}

// Close closes the file.
func (r *ReadOnly) Close() error { return r.db.Close() }
