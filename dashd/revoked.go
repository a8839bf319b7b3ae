package main

import (
	"context"
	"strconv"
	"time"

	"arizuko/pkg/store"
)

// revokedPrefix marks, among dashd's cursors, the ids of sessions that were logged out.
const revokedPrefix = "revoked:"

// revoked stores sessions that were logged out until they would have expired.
type revoked struct {
	st    *store.Store
	now   func() time.Time
	ended func() // called after each logout
}

func (r revoked) Add(ctx context.Context, id string, until time.Time) error {
	err := r.st.Write(ctx, func(tx *store.Tx) error {
		all, err := tx.DaemonCursors(ctx, name, revokedPrefix)
		if err != nil {
			return err
		}
		for key, value := range all {
			if at, err := strconv.ParseInt(value, 10, 64); err != nil || at < r.now().Unix() {
				if err := tx.DeleteCursor(name, key); err != nil {
					return err
				}
			}
		}
		return tx.PutCursor(name, revokedPrefix+id, strconv.FormatInt(until.Unix(), 10))
	})
	if err == nil {
		r.ended()
	}
	return err
}

func (r revoked) Has(ctx context.Context, id string) (bool, error) {
	value, err := r.st.DaemonCursor(ctx, name, revokedPrefix+id)
	return value != "", err
}
