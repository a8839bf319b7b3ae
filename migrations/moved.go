package migrations

import (
	"context"
	"database/sql"
	"errors"
)

// The row of cursors that `migrate copy` writes to a database whose rows it has copied to another one. Its value says
// where that is.
const (
	QueryMoved = `SELECT value FROM cursors WHERE daemon = 'migrate' AND key = 'moved'`
	PutMoved   = `INSERT INTO cursors (daemon, key, value) VALUES ('migrate', 'moved', $1) ON CONFLICT (daemon, key) DO UPDATE SET value = excluded.value`
	DropMoved  = `DELETE FROM cursors WHERE daemon = 'migrate' AND key = 'moved'`
)

// Moved returns where a migrated database was copied to, and when; "" if it was not. Daemons must not use such a
// database: they run on the other one.
func Moved(ctx context.Context, db querier) (to string, err error) {
	err = db.QueryRowContext(ctx, QueryMoved).Scan(&to)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return to, err
}

// querier is an *sql.DB, or one connection of it.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
