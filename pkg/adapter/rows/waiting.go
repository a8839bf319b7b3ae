package rows

import (
	"context"

	"arizuko/pkg/store"
)

// Asleep reports whether a platform has messages to be marked by MarkAsleep.
func Asleep(ctx context.Context, r store.Reader, platform string, before int64) (bool, error) {
	rows, err := r.Asleep(ctx, platform, before)
	return len(rows) > 0, err
}
