package store

// The statements of metrics, which read rows at a scrape. Each counts entries of a partial index, up to a limit.
const (
	queryUndecidedBacklog = `SELECT b.n, ifnull((SELECT received_at FROM messages WHERE id = b.oldest), 0) FROM (SELECT count(*) AS n, min(id) AS oldest
		FROM (SELECT id FROM messages INDEXED BY messages_undecided WHERE direction = 'in' AND disposition IS NULL LIMIT ?+0) w) b`
	queryParkedBacklog = `SELECT b.n, ifnull((SELECT received_at FROM messages WHERE id = b.oldest), 0) FROM (SELECT count(*) AS n, min(id) AS oldest
		FROM (SELECT id FROM messages INDEXED BY messages_parked WHERE disposition = 'onboarding' LIMIT ?+0) w) b`
	queryOutboxBacklog = `SELECT b.n, ifnull((SELECT received_at FROM messages WHERE id = b.oldest), 0) FROM (SELECT count(*) AS n, min(id) AS oldest
		FROM (SELECT id FROM messages INDEXED BY messages_outbox WHERE platform = ? AND out_state IN ('queued', 'sending') LIMIT ?+0) w) b`
	queryFilesBacklog = `SELECT b.n, ifnull((SELECT received_at FROM messages WHERE id = b.oldest), 0) FROM (SELECT count(*) AS n, min(id) AS oldest
		FROM (SELECT id FROM messages INDEXED BY messages_wanted WHERE platform = ? AND pending_files > 0 AND files_wanted = 1 LIMIT ?+0) w) b`

	queryRunningBacklog = `SELECT count(*), ifnull(min(started_at), 0) FROM turns INDEXED BY turns_run WHERE state = 'running'`
)
