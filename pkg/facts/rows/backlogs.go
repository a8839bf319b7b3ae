package rows

import (
	"context"

	"arizuko/pkg/store"
)

const (
	backlogOf             = `SELECT b.n, ifnull((SELECT received_at FROM messages WHERE id = b.oldest), 0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM (SELECT id FROM messages INDEXED BY `
	backlogCounts         = ` LIMIT ?+0) w) b`
	queryUndecidedBacklog = backlogOf + `messages_undecided WHERE direction = 'in' AND disposition IS NULL` +
		backlogCounts
	queryParkedBacklog = backlogOf + `messages_parked WHERE disposition = 'onboarding'` + backlogCounts
	queryOutboxBacklog = backlogOf + `messages_outbox WHERE platform = ? AND out_state IN ('queued', 'sending')` +
		backlogCounts
	queryFilesBacklog = backlogOf + `messages_wanted WHERE platform = ? AND pending_files > 0 AND ` +
		`files_wanted = 1` + backlogCounts
	queryRunningBacklog = `SELECT count(*), ifnull(min(started_at), 0) FROM turns INDEXED BY turns_run WHERE state = 'running'`
)

// Backlog is how many rows wait for something, and since when the oldest of them has waited, in unix
// ms, 0 if none does.
type Backlog struct {
	Count  int
	Oldest int64
}

// Waits is the reason why rows wait.
type Waits int

// Reasons why rows wait.
const (
	ForDecision Waits = iota // inbound rows without a disposition
	ForApproval              // inbound rows of a chat that is not connected yet
	ForDelivery              // outbound rows of a platform
	ForFiles                 // rows of a platform whose files are to be downloaded
	ForAgent                 // turns that agents work on
)

// Backlog counts the rows that wait for something, at most limit: of more than those the oldest may be another.
// platform is that of the rows which wait for delivery or files. All running turns are counted.
func CountBacklog(ctx context.Context, r store.Reader, waits Waits, platform string, limit int) (b Backlog,
	err error) {
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
