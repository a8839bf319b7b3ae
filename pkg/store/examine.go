package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"arizuko/migrations"
	"arizuko/pkg/msg"
)

// Schema is the state of a database's schema.
type Schema struct {
	Version int
	Dirty   bool   // a migration is running or has failed
	Floor   int    // the oldest program that may use it was built for this version
	Moved   string // where its rows were copied to, and when; "" if they were not
}

// Mismatch returns why a program that was built for a schema cannot use this one, with both versions and what to do: an
// ErrSchemaRefused if it is too new. It is nil if the program can, and if there is no schema.
func (s Schema) Mismatch(built int) error {
	switch {
	case s.Version == 0:
		return nil
	case s.Version < built:
		return fmt.Errorf("the schema is at %d and this program needs %d: %s", s.Version, built, SchemaFix)
	case s.Floor > built:
		return fmt.Errorf("%w, or go back by its `migrate down` (it was built for schema %d, the floor is %d, the schema is at %d)",
			ErrSchemaRefused, built, s.Floor, s.Version)
	}
	return nil
}

// SchemaFix is what to do about a schema that is older than a program needs.
const SchemaFix = "run `migrate up`; if it was taken back on purpose, stop the daemons of this version and start those of before"

// Newer says that the schema is newer than that of a program which can use it, "" if it is not.
func (s Schema) Newer(built int) string {
	if s.Version <= built || s.Floor > built {
		return ""
	}
	return fmt.Sprintf("the schema is at %d, newer than this program, which was built for %d: it works as before; "+
		"install the version that migrated it", s.Version, built)
}

// SchemaProblem says why a program that was built for a schema cannot go on with the database that it has opened, "" if it
// can.
func (r Reader) SchemaProblem(ctx context.Context, built int) (string, error) {
	var s Schema
	found, err := r.Get(ctx, []any{&s.Version, &s.Floor},
		`SELECT m.version, f.floor FROM schema_migrations m CROSS JOIN schema_floor f`)
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

// ReadSchema reads the schema of the database at path, whatever its version. The
// error is an fs.ErrNotExist if there is no file, an ErrDamaged if it is no database, a migrations.ErrServer
// if it is on a server that cannot be used.
// Without the tables that have the schema's version, Version is 0.
func ReadSchema(ctx context.Context, path string) (s Schema, err error) {
	query := `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('schema_migrations', 'schema_floor')`
	if IsServer(path) {
		query = `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name IN ('schema_migrations', 'schema_floor')`
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
// it is large, and returns what is wrong with it, at most ten lines.
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

// PlatformWaiting is the undelivered rows of a platform.
type PlatformWaiting struct {
	Platform string
	Waiting
}

// WaitingByPlatform counts the undelivered rows of each platform.
func (r Reader) WaitingByPlatform(ctx context.Context) ([]PlatformWaiting, error) {
	return All(ctx, r, func(scan Scan) (p PlatformWaiting, err error) {
		err = scan(&p.Platform, &p.Rows, &p.Oldest, &p.ChatJID, &p.Since)
		return p, err
	}, queryWaitingByPlatform)
}

// ParkedWithoutRequest counts the parked rows of chats without a pending request,
// those that arrived at the time before, in unix ms, or earlier.
func (r Reader) ParkedWithoutRequest(ctx context.Context, before int64) (Waiting, error) {
	return r.waiting(ctx, queryParkedAlone, before)
}

// WantedWaiting counts the rows whose files are to be downloaded, those that arrived
// at the time before, in unix ms, or earlier.
func (r Reader) WantedWaiting(ctx context.Context, before int64) (Waiting, error) {
	return r.waiting(ctx, queryWantedBefore, before)
}

// WaitingRequests counts the requests that wait for an operator. Oldest of the
// result is 0; code is that of the oldest.
func (r Reader) WaitingRequests(ctx context.Context) (w Waiting, code string, err error) {
	_, err = r.Get(ctx, []any{&w.Rows, &code, &w.ChatJID, &w.Since}, queryWaitingRequests)
	return w, code, err
}

// Refused counts the rows among the newest 10,000, stored since the time, in unix ms, that were dropped for a reason.
func (r Reader) Refused(ctx context.Context, reason msg.Reason, since int64) (int, error) {
	return Value[int](ctx, r, queryRefused, maxRecent, string(reason), since)
}

// maxRecent is how many of the newest rows Refused, Undelivered and Arrivals read.
const maxRecent = 10_000

// Undelivered is an outbound row that failed, or may have arrived.
type Undelivered struct {
	ID         int64
	ChatJID    string
	State      msg.OutState
	ErrorClass string
	Error      string
}

// Undelivered returns the rows among the newest 10,000, stored since the time, in
// unix ms, whose delivery failed or is ambiguous; newest first.
func (r Reader) Undelivered(ctx context.Context, since int64) ([]Undelivered, error) {
	return All(ctx, r, func(scan Scan) (u Undelivered, err error) {
		err = scan(&u.ID, &u.ChatJID, &u.State, &u.ErrorClass, &u.Error)
		return u, err
	}, queryUndelivered, since, maxRecent)
}

// Arrivals is what the times of the newest rows say about the clock, in unix ms. The
// rows' ids are 0 if there is none.
type Arrivals struct {
	Last     int64 // the latest time
	LastID   int64
	Step     int64 // by how much the time went back from one row to the next, at most
	SteppedA int64 // the rows before and after that
	SteppedB int64
	StepAt   int64 // when the row after it arrived
}

// Arrivals reads when the newest rows arrived, at most 10,000. Inserts of other
// programs may set any time.
func (r Reader) Arrivals(ctx context.Context) (a Arrivals, err error) {
	var lastID, last int64
	err = r.Each(ctx, func(scan Scan) (bool, error) {
		var id, at int64
		if err := scan(&id, &at); err != nil {
			return false, err
		}
		if at > a.Last {
			a.Last, a.LastID = at, id
		}
		if step := last - at; lastID != 0 && step > a.Step {
			a.Step, a.SteppedA, a.SteppedB, a.StepAt = step, lastID, id, at
		}
		lastID, last = id, at
		return true, nil
	}, queryArrivals, maxRecent)
	return a, err
}
