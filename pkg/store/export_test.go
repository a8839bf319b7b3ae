package store

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"github.com/mattn/go-sqlite3"
)

// SetLockTimeout bounds how long the next writes wait for other processes.
func (s *Store) SetLockTimeout(d time.Duration) { s.lockTimeout = d }

// LockCameTooLate reports whether the lock was acquired after a write timed out
// waiting for it. No write may be running.
func (s *Store) LockCameTooLate() bool {
	select {
	case <-s.engine.(*sqlite).lock.pending:
		return true
	default:
		return false
	}
}

// Queued is the number of calls of Write that wait for the writer.
func (s *Store) Queued() int { return len(s.lanes[0].jobs) }

// CountCommits counts the transactions that change something, from now on. No write may be running.
func (s *Store) CountCommits() (*atomic.Int64, error) {
	commits := new(atomic.Int64)
	file, ok := s.engine.(*sqlite)
	if !ok {
		for _, l := range s.lanes {
			l.writer = countingWriter{l.writer, commits}
		}
		return commits, nil
	}
	return commits, file.conn.Raw(func(driver any) error {
		driver.(*sqlite3.SQLiteConn).RegisterCommitHook(func() int {
			commits.Add(1)
			return 0
		})
		return nil
	})
}

type countingWriter struct {
	writer
	commits *atomic.Int64
}

func (w countingWriter) commit(st *statements, poked []string) error {
	w.commits.Add(1)
	return w.writer.commit(st, poked)
}

// GetRow reads one row of any query and reports whether there was one.
func (r Reader) GetRow(ctx context.Context, query string, args []any, dest ...any) (bool, error) {
	return r.Get(ctx, dest, query, args...)
}

// CheckOptions reads the options of a connection back.
func CheckOptions(ctx context.Context, c *sql.Conn, autocheckpoint int) error {
	return checkOptions(ctx, c, autocheckpoint)
}

// Path is the database's file.
func (s *Store) Path() string {
	if file, ok := s.engine.(*sqlite); ok {
		return file.path
	}
	return ""
}
