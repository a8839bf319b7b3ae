package store

import (
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"
)

// ErrStale says that a row was no longer in the state the caller saw. The
// caller reads again and decides anew.
var ErrStale = errors.New("the row has changed in the meantime")

// ErrFull says that the disk or the database's page limit is used up. Nothing
// is lost: writers try again until there is room.
var ErrFull = errors.New("the disk or the database is full: free some space, writing goes on by itself")

// ErrRefused says that the database will not take what is written, now or
// later: a constraint forbids it, or it is too large.
var ErrRefused = errors.New("the database refuses this row")

// explain puts what an operator can do in front of the driver's error.
func explain(err error) error {
	var se sqlite3.Error
	if !errors.As(err, &se) {
		return err
	}
	switch se.Code {
	case sqlite3.ErrFull:
		return fmt.Errorf("%w (%w)", ErrFull, err)
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return fmt.Errorf("%w (%w)", ErrLocked, err)
	case sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrMismatch, sqlite3.ErrRange:
		return fmt.Errorf("%w (%w)", ErrRefused, err)
	}
	return err
}
