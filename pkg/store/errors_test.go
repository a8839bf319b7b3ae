package store

import (
	"errors"
	"fmt"
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
		got := explain(fmt.Errorf("write: %w", tt.err))
		if !errors.Is(got, tt.want) || !errors.Is(got, tt.err) {
			t.Errorf("%v is explained as %v", tt.err, got)
		}
	}
}
