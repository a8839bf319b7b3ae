package store

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/mattn/go-sqlite3"
)

func TestExplain_ErrorsOfSQLite_SayWhatToDo(t *testing.T) {
	t.Parallel()
	plain := errors.New("another error")
	tests := []struct {
		err, want error
	}{
		{sqlite3.Error{Code: sqlite3.ErrFull}, ErrFull},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}, ErrFull},
		{sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EDQUOT}, ErrFull},
		{sqlite3.Error{Code: sqlite3.ErrBusy}, ErrLocked},
		{sqlite3.Error{Code: sqlite3.ErrConstraint}, ErrRefused},
		{sqlite3.Error{Code: sqlite3.ErrTooBig}, ErrRefused},
		{sqlite3.Error{Code: sqlite3.ErrCorrupt}, ErrDamaged},
		{sqlite3.Error{Code: sqlite3.ErrNotADB}, ErrDamaged},
		{sqlite3.Error{Code: sqlite3.ErrReadonly}, ErrReadOnly},
		{plain, plain},
	}
	for _, tt := range tests {
		got := Explain(fmt.Errorf("write: %w", tt.err))
		if !errors.Is(got, tt.want) || !errors.Is(got, tt.err) {
			t.Errorf("%v is explained as %v", tt.err, got)
		}
	}
}

func TestReason_NamesNoPathAndNoRow(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		nil:                                      "",
		sqlite3.Error{Code: sqlite3.ErrFull}:     "disk or database full: ",
		sqlite3.Error{Code: sqlite3.ErrCorrupt}:  "database damaged: ",
		sqlite3.Error{Code: sqlite3.ErrReadonly}: "database not writable: ",
		sqlite3.Error{Code: sqlite3.ErrBusy}:     "database locked: ",
		sqlite3.Error{Code: sqlite3.ErrCantOpen}: "database not readable: ",
		errors.New("/srv/arizuko.db: row 7"):     "the database cannot be used: ",
	} {
		if got := Reason(err); !strings.HasPrefix(got, want) || strings.Contains(got, "/srv") || (err == nil) != (got == "") {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
