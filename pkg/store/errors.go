package store

import (
	"errors"
	"fmt"
	"slices"

	"arizuko/pkg/store/pg"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"
)

// ErrStale means that a row is no longer in the state that the caller read. The
// caller reads it and decides again.
var ErrStale = errors.New("row changed in the meantime")

// ErrFull means that the disk, a quota or the database's page limit is used up.
// Nothing is lost: writers retry until there is space.
var ErrFull = errors.New("disk or database full: free some space, writes are retried; " +
	"old files in logs/ and media/ may be removed, RETENTION_DAYS does it every day")

// ErrDamaged means that something other than SQLite has changed the database file.
var ErrDamaged = errors.New("database damaged: stop all daemons and restore a backup")

// ErrReadOnly means that this process may not write the database file.
var ErrReadOnly = errors.New("database not writable: check the owner and mode of the data folder and of arizuko.db*, " +
	"and whether the file system is mounted read-only")

// ErrRefused means that the database will never accept the write: it violates a
// constraint, or is too large.
var ErrRefused = errors.New("write refused by the database")

// ErrPanic means that the function given to Write has panicked; the error has the
// stack. It is also an ErrRefused.
var ErrPanic = errors.New("panic")

// ErrUnreachable means that the Postgres server does not answer. The next use connects again.
var ErrUnreachable = errors.New("database server not reachable: check that it runs and that ARIZUKO_DB names it; " +
	"it is tried again by itself")

// ErrURL means that the URL of a database is wrong.
var ErrURL = pg.ErrURL

// errUnopened is the reason of a file that cannot be opened.
var errUnopened = errors.New("database not readable: check the owner and mode of the data folder and of arizuko.db*")

// Reason says in words for an operator, without a path or a row, why the database cannot be used; "" for no error.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	if known := outage(err); known != nil {
		return known.Error()
	}
	return "the database cannot be used: `dashd doctor` says more"
}

// IsOutage reports whether an error is of a database that cannot be used, for a reason that Reason knows.
func IsOutage(err error) bool { return err != nil && outage(err) != nil }

func outage(err error) error {
	err = Explain(err)
	for _, known := range []error{errServerFull, errServerReadOnly, errRefusedLogin, errPooler, ErrUnreachable, ErrURL,
		ErrFull, ErrDamaged, ErrReadOnly, ErrLocked, errUnopened} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

// Explain gives an error of a query its kind, such as ErrDamaged or ErrLocked, and puts the remedy for an
// operator before the driver's error.
func Explain(err error) error {
	var se sqlite3.Error
	if !errors.As(err, &se) || slices.ContainsFunc([]error{ErrFull, ErrDamaged, ErrReadOnly, ErrLocked, ErrRefused,
		errUnopened},
		func(known error) bool { return errors.Is(err, known) }) { // explained already
		return explainPostgres(err)
	}
	if se.Code == sqlite3.ErrFull || se.SystemErrno == unix.ENOSPC || se.SystemErrno == unix.EDQUOT {
		return fmt.Errorf("%w (%w)", ErrFull, err)
	}
	switch se.Code {
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return fmt.Errorf("%w (%w)", ErrDamaged, err)
	case sqlite3.ErrCantOpen, sqlite3.ErrAuth:
		return fmt.Errorf("%w (%w)", errUnopened, err)
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return fmt.Errorf("%w (%w)", ErrLocked, err)
	case sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrMismatch, sqlite3.ErrRange:
		return fmt.Errorf("%w (%w)", ErrRefused, err)
	}
	return err
}
