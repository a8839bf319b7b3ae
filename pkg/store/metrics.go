package store

import "context"

// Backlog is how many rows wait for something, and since when the oldest of them has waited, in unix
// ms, 0 if none does.
type Backlog struct {
	Count  int
	Oldest int64
}

// UndecidedBacklog is that of inbound rows without a disposition. At most limit rows are counted, here
// and below; of more than those the oldest may be another.
func (r Reader) UndecidedBacklog(ctx context.Context, limit int) (Backlog, error) {
	return r.backlog(ctx, queryUndecidedBacklog, limit)
}

// ParkedBacklog is that of inbound rows that wait for an approval of their chat.
func (r Reader) ParkedBacklog(ctx context.Context, limit int) (Backlog, error) {
	return r.backlog(ctx, queryParkedBacklog, limit)
}

// OutboxBacklog is that of outbound rows of a platform that are not delivered.
func (r Reader) OutboxBacklog(ctx context.Context, platform string, limit int) (Backlog, error) {
	return r.backlog(ctx, queryOutboxBacklog, platform, limit)
}

// FilesBacklog is that of rows of a platform whose files are to be downloaded.
func (r Reader) FilesBacklog(ctx context.Context, platform string, limit int) (Backlog, error) {
	return r.backlog(ctx, queryFilesBacklog, platform, limit)
}

// RunningBacklog is that of the turns that agents work on.
func (r Reader) RunningBacklog(ctx context.Context) (Backlog, error) {
	return r.backlog(ctx, queryRunningBacklog)
}

func (r Reader) backlog(ctx context.Context, query string, args ...any) (b Backlog, err error) {
	_, err = r.Get(ctx, []any{&b.Count, &b.Oldest}, query, args...)
	return b, err
}
