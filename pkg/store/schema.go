package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/mattn/go-sqlite3"
)

// schemaPoll is how often a waiting daemon reads the schema's version.
const schemaPoll = 100 * time.Millisecond

// ErrSchemaRefused means that this program is too old for the database.
var ErrSchemaRefused = errors.New("this program is too old for the database: install the version that migrated it")

// WaitSchema waits until the database at path is migrated, and not dirty, to at
// least version built, the one this program was built for. A newer schema is
// accepted if its compatibility floor is not above built; otherwise it returns
// ErrSchemaRefused at once. waiting is called with each new reason to wait, in
// words, and the error that it comes from, if any. When ctx ends, its error is
// returned with both.
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
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no database yet: run `migrate up`", err, nil
	case err != nil:
		return errUnopened.Error(), err, nil
	}
	db, err := sql.Open("sqlite3", dsn(path, "ro", readerCacheKiB))
	if err != nil {
		return "", nil, err
	}
	defer db.Close()
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
		return fmt.Sprintf("the schema is at %d and this program needs %d: run `migrate up`", version, built), nil, nil
	}
	if err := db.QueryRowContext(ctx, `SELECT floor FROM schema_floor`).Scan(&floor); err != nil {
		return "the schema has no compatibility floor: run `migrate up`", err, nil
	}
	if floor > built {
		return "", nil, fmt.Errorf("%w (it was built for schema %d, the floor is %d)", ErrSchemaRefused, built, floor)
	}
	return "", nil, nil
}

// unmigrated reports whether a table or row is missing, as opposed to a file that cannot be read.
func unmigrated(err error) bool {
	var se sqlite3.Error
	return errors.Is(err, sql.ErrNoRows) || errors.As(err, &se) && se.Code == sqlite3.ErrError
}

func withCause(reason string, cause error) string {
	if cause == nil {
		return reason
	}
	return reason + " (" + cause.Error() + ")"
}
