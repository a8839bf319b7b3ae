package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"arizuko/migrations"
)

// Schema is the state of a database's schema.
type Schema struct {
	Version int
	Dirty   bool   // a migration is running or has failed
	Floor   int    // the oldest program that may use it was built for this version
	Moved   string // where its rows were copied to, and when; "" if they were not
}

// Mismatch returns why a program that was built for a schema cannot use this one, with both versions and the remedy: an
// ErrSchemaRefused if it is too new. It is nil if the program can, and if there is no schema.
func (s Schema) Mismatch(built int) error {
	switch {
	case s.Version == 0:
		return nil
	case s.Version < built:
		return fmt.Errorf("the schema is at %d and this program needs %d: %s", s.Version, built, SchemaFix)
	case s.Floor > built:
		return fmt.Errorf("%w, or go back by its `migrate down` (it was built for schema %d, the floor is %d, "+
			"the schema is at %d)",
			ErrSchemaRefused, built, s.Floor, s.Version)
	}
	return nil
}

// SchemaFix is the remedy for a schema that is older than a program needs.
const SchemaFix = "run `migrate up`; if it was taken back on purpose, stop the daemons of this version and start " +
	"those of before"

// Newer says that the schema is newer than that of a program which can use it, "" if it is not.
func (s Schema) Newer(built int) string {
	if s.Version <= built || s.Floor > built {
		return ""
	}
	return fmt.Sprintf("the schema is at %d, newer than this program, which was built for %d: it works as before; "+
		"install the version that migrated it", s.Version, built)
}

// SchemaProblem says why a program that was built for a schema cannot go on with the database that it has opened, "" if
// it can.
func (r Reader) SchemaProblem(ctx context.Context, built int) (string, error) {
	var s Schema
	found, err := r.Get(ctx, []any{&s.Version, &s.Floor},
		`SELECT m.version, f.floor FROM schema_migrations m CROSS JOIN schema_floor f ON TRUE`)
	switch {
	case err != nil && unmigrated(err), err == nil && !found:
		return Changed + "the database is not migrated: " + SchemaFix, nil
	case err != nil || s.Mismatch(built) == nil:
		return "", err
	}
	return Changed + s.Mismatch(built).Error(), nil
}

// Changed begins why a daemon that worked cannot go on with its database.
const Changed = "the schema was changed while this daemon ran: "

// The number of the tables that have the schema's version, in a file and on a server.
const (
	fileTables   = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('schema_migrations', 'schema_floor')`
	serverTables = `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name IN ('schema_migrations', 'schema_floor')`
)

// ReadSchema reads the schema of the database at path, whatever its version. The
// error is an fs.ErrNotExist if there is no file, an ErrDamaged if it is no database, a migrations.ErrServer
// if it is on a server that cannot be used.
// Without the tables that have the schema's version, Version is 0.
func ReadSchema(ctx context.Context, path string) (s Schema, err error) {
	query := fileTables
	if IsServer(path) {
		query = serverTables
	} else {
		switch info, err := os.Stat(path); {
		case err != nil:
			return s, err
		case !info.Mode().IsRegular(): // SQLite would wait for the other end of a named pipe
			return s, fmt.Errorf("%w (%s is not a file)", ErrDamaged, path)
		}
	}
	db, err := openReading(path)
	if err != nil {
		return s, err
	}
	defer db.Close()
	if IsServer(path) {
		if err := migrations.CheckServer(ctx, db); err != nil {
			return s, Explain(err)
		}
	}
	var tables int
	err = db.QueryRowContext(ctx, query).Scan(&tables)
	if err != nil || tables < 2 {
		return s, Explain(err)
	}
	err = db.QueryRowContext(ctx,
		`SELECT version, dirty, (SELECT floor FROM schema_floor) FROM schema_migrations LIMIT 1`).
		Scan(&s.Version, &s.Dirty, &s.Floor)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err == nil {
		s.Moved, err = migrations.Moved(ctx, db)
	}
	return s, Explain(err)
}

// maxDamage bounds the lines about a damaged database.
const maxDamage = 10

// Damage checks every page and index of the database file at path, which takes minutes if
// it is large, and returns the damage, at most ten lines.
func Damage(ctx context.Context, path string) (lines []string, err error) {
	db, err := sql.Open("sqlite3", dsn(path, "ro", readerCacheKiB))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, fmt.Sprintf(`PRAGMA integrity_check(%d)`, maxDamage))
	if err != nil {
		return nil, Explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		if line != "ok" {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines, Explain(rows.Err())
}
