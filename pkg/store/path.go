package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ReadOnly reads the database without taking any lock that a daemon waits for.
type ReadOnly struct {
	Reader
	db *sql.DB
}

// OpenReadOnly opens a database file for reading, whether daemons have it open
// or not. It must be migrated to version built at least, see WaitSchema.
func OpenReadOnly(ctx context.Context, path string, built int) (*ReadOnly, error) {
	if _, err := os.Stat(path); !IsServer(path) && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no database at %s: set ARIZUKO_DATA to the data folder, or run `migrate up`", path)
	}
	reason, cause, err := schemaReason(ctx, path, built)
	if err == nil && reason != "" {
		err = errors.New(withCause(reason, cause))
	}
	if err != nil {
		return nil, err
	}
	db, err := openReading(path)
	if err != nil {
		return nil, err
	}
	return &ReadOnly{Reader{&statements{prepare: db.PrepareContext, dialect: dialectOf(path)}}, db}, nil
}

// Close closes the file.
func (r *ReadOnly) Close() error { return r.db.Close() }
