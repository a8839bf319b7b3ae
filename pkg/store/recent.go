package store

import (
	"context"
)

// Change is the last edit or deletion of a message.
type Change struct {
	Deleted bool
	Content string // after the edit
}

// LastChange returns the last change of a row up to a row id, nil if there is none.
func (r Reader) LastChange(ctx context.Context, id, upto int64) (*Change, error) {
	var c Change
	found, err := r.Get(ctx, []any{&c.Deleted, &c.Content}, queryChange, id, upto)
	if err != nil || !found {
		return nil, err
	}
	return &c, nil
}
