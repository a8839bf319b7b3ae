package main

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// An upgrade over several versions has several transactions. So that one that was ended in between is completed as one,
// with the way back to where it began, the database keeps the version that it began with, until the last transaction.

// begun is an upgrade: from and to which version it leads. The zero value is none.
type begun struct{ from, to int }

// before is the version that the upgrade began with if it is not complete at a version, else 0.
func (b begun) before(at int) int {
	if at >= b.to {
		return 0
	}
	return b.from
}

// mark keeps the version that an unfinished upgrade began with; 0 for none.
func (c config) mark(tx *sql.Tx, from int) error {
	query := "PRAGMA user_version = " + strconv.Itoa(from)
	if c.server != "" {
		query = "COMMENT ON TABLE schema_migrations IS NULL"
		if from > 0 {
			query = "COMMENT ON TABLE schema_migrations IS '" + strconv.Itoa(from) + "'"
		}
	}
	if _, err := tx.Exec(query); err != nil {
		return fmt.Errorf("mark the upgrade: %w", err)
	}
	return nil
}

// unfinished is the version that an unfinished upgrade of a database began with, 0 if there is none.
func (c config) unfinished(db *sql.DB, now version) (from int, err error) {
	query := "PRAGMA user_version"
	if c.server != "" {
		query = `SELECT substring(obj_description(to_regclass('schema_migrations'), 'pg_class') FROM '^[0-9]{1,6}$')::int`
	}
	var stored sql.NullInt64
	if err := db.QueryRow(query).Scan(&stored); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read the mark of an unfinished upgrade: %w", err)
	}
	if from = int(stored.Int64); from >= now.number { // none, or it was undone since
		return 0, nil
	}
	return from, nil
}
