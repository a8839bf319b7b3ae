package store

// The statements of metrics, which read rows at a scrape. Each counts entries of a partial index, up to a limit.
const (
	backlogOf     = `SELECT b.n, ifnull((SELECT received_at FROM messages WHERE id = b.oldest), 0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM (SELECT id FROM messages INDEXED BY `
	backlogCounts = ` LIMIT ?+0) w) b`

	queryUndecidedBacklog = backlogOf + `messages_undecided WHERE direction = 'in' AND disposition IS NULL` + backlogCounts
	queryParkedBacklog    = backlogOf + `messages_parked WHERE disposition = 'onboarding'` + backlogCounts
	queryOutboxBacklog    = backlogOf + `messages_outbox WHERE platform = ? AND out_state IN ('queued', 'sending')` + backlogCounts
	queryFilesBacklog     = backlogOf + `messages_wanted WHERE platform = ? AND pending_files > 0 AND files_wanted = 1` + backlogCounts

	queryRunningBacklog = `SELECT count(*), ifnull(min(started_at), 0) FROM turns INDEXED BY turns_run WHERE state = 'running'`
)
