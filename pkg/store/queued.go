package store

import (
	"context"
)

// CountQueued is the number of queued turns.
func (r Reader) CountQueued(ctx context.Context) (int, error) {
	return Value[int](ctx, r, queryQueuedCount)
}
