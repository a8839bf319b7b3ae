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
	_, err = r.get(ctx, []any{&b.Count, &b.Oldest}, query, args...)
	return b, err
}

// QueueBacklog is what queued turns wait for.
type QueueBacklog struct {
	Ready Backlog // for an agent, or for an older turn of their conversation
	Later int     // for a time to come: those of Files and Probe, a retry, or the machine
	Files int     // for the files of their rows
	Probe int     // for the next attempt of a group whose turns fail alike
}

// QueueBacklog counts queued turns at the time now, in unix ms.
func (r Reader) QueueBacklog(ctx context.Context, now int64, limit int) (b QueueBacklog, err error) {
	_, err = r.get(ctx, []any{&b.Ready.Count, &b.Ready.Oldest, &b.Later, &b.Files, &b.Probe}, queryQueueBacklog, now,
		limit)
	return b, err
}

// LiveRuns counts the runs whose process has not ended, by runtime.
func (r Reader) LiveRuns(ctx context.Context) (map[string]int, error) {
	live := map[string]int{}
	err := r.each(ctx, func(scan scanner) (bool, error) {
		var runtime string
		var n int
		err := scan(&runtime, &n)
		live[runtime] = n
		return true, err
	}, queryLiveRuns)
	return live, err
}
