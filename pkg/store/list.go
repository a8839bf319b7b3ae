package store

import (
	"context"
)

// CopyOf is the last copy of a row that was sent, or decided, in its place; 0 if there is none.
func (r Reader) CopyOf(ctx context.Context, id int64) (int64, error) {
	return Value[int64](ctx, r, queryCopyOf, id)
}
