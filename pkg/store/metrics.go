package store

import "context"

// Backlog is how many rows wait for something, and since when the oldest of them has waited, in unix
// ms, 0 if none does.
type Backlog struct {
	Count  int
	Oldest int64
}

// Waits is the reason why rows wait.
type Waits int

// What rows wait for.
const (
	ForDecision Waits = iota // inbound rows without a disposition
	ForApproval              // inbound rows of a chat that is not connected yet
	ForDelivery              // outbound rows of a platform
	ForFiles                 // rows of a platform whose files are to be downloaded
	ForAgent                 // turns that agents work on
)

// Backlog counts the rows that wait for something, at most limit: of more than those the oldest may be another.
// platform is that of the rows which wait for delivery or files. All running turns are counted.
func (r Reader) Backlog(ctx context.Context, waits Waits, platform string, limit int) (b Backlog, err error) {
	query, args := queryRunningBacklog, []any{}
	switch waits {
	case ForDecision:
		query, args = queryUndecidedBacklog, []any{limit}
	case ForApproval:
		query, args = queryParkedBacklog, []any{limit}
	case ForDelivery:
		query, args = queryOutboxBacklog, []any{platform, limit}
	case ForFiles:
		query, args = queryFilesBacklog, []any{platform, limit}
	}
	_, err = r.Get(ctx, []any{&b.Count, &b.Oldest}, query, args...)
	return b, err
}
