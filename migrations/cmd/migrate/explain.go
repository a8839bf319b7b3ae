package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"
)

// explain adds the remedy for an error of the database file or of its folder.
func (c config) explain(err error) error {
	var db sqlite3.Error
	_ = errors.As(err, &db)
	has := func(others ...unix.Errno) bool {
		for _, no := range others {
			if errors.Is(err, no) || db.SystemErrno == no {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil, errors.As(err, new(refusal)):
		return err
	case db.Code == sqlite3.ErrFull, has(unix.ENOSPC, unix.EDQUOT):
		return fmt.Errorf("%w: make room on the disk of %s, then run it again", err, c.data)
	case db.Code == sqlite3.ErrNotADB, db.Code == sqlite3.ErrCorrupt:
		return refuse("%w: stop all daemons, and put a backup in its place by `dashd restore --force`, "+
			"or the copy that the last migration has kept, %s", err, c.copyPath("N"))
	case db.Code == sqlite3.ErrBusy, db.Code == sqlite3.ErrLocked:
		return fmt.Errorf("%w: another program holds the database, such as an open sqlite3 shell; end it, "+
			"then run it again", err)
	case db.Code == sqlite3.ErrReadonly, db.Code == sqlite3.ErrCantOpen, has(unix.EROFS),
		errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: run it as the user who owns %s and what is in it, and look whether its disk is "+
			"mounted read-only", err, c.data)
	}
	return err
}
