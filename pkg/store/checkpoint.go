package store

import (
	"context"
	"database/sql"
	"fmt"

	"arizuko/pkg/failpoint"
)

// Checkpointer copies the write-ahead log into the database file on a
// separate connection, so that no writer has to.
type Checkpointer struct{ db *sql.DB } // nil for a server, which does it itself

// checkpointBusy bounds how long a RESTART waits for readers, in ms: while it
// waits, writers wait too.
const checkpointBusy = "50"

// OpenCheckpointer opens the checkpointing connection.
func OpenCheckpointer(path string) (*Checkpointer, error) {
	if IsServer(path) {
		return &Checkpointer{}, nil
	}
	db, err := sql.Open("sqlite3", dsn(path, "rw", readerCacheKiB))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, pragma := range []string{"busy_timeout=" + checkpointBusy, "wal_autocheckpoint=0"} {
		if _, err := db.Exec("PRAGMA " + pragma); err != nil {
			_ = db.Close()
			return nil, fmt.Errorf("open checkpointer: %w", Explain(err))
		}
	}
	return &Checkpointer{db}, nil
}

// Checkpoint is the result of one.
type Checkpoint struct {
	Pages int  // length of the write-ahead log
	Busy  bool // a reader or writer kept the log from starting over
}

// Run copies as much as it can without waiting, then restarts the log. A long reader
// may prevent the restart: that is not an error, the next Run retries.
func (c *Checkpointer) Run(ctx context.Context) (result Checkpoint, err error) {
	if c.db == nil {
		return Checkpoint{}, nil
	}
	for _, mode := range []string{"PASSIVE", "RESTART"} {
		var copied int
		err = c.db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(`+mode+`)`).Scan(&result.Busy, &result.Pages, &copied)
		if err != nil {
			return Checkpoint{}, fmt.Errorf("checkpoint: %w", Explain(err))
		}
		failpoint.At(failpoint.Checkpoint)
	}
	return result, nil
}

// Close closes the connection.
func (c *Checkpointer) Close() error {
	if c.db == nil {
		return nil
	}
	return c.db.Close()
}
