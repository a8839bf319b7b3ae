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
	// Those that may start by ?1 with the oldest of them, then those that wait longer, by what for.
	queryQueueBacklog = `SELECT q.n, ifnull((SELECT created_at FROM turns WHERE id = q.oldest), 0), q.later,
		(SELECT count(*) FROM (SELECT 1 FROM turns INDEXED BY turns_files WHERE state = 'queued' AND waits_for = 'files' LIMIT ?2+0) f),
		(SELECT count(*) FROM (SELECT 1 FROM turns INDEXED BY turns_probe WHERE state = 'queued' AND waits_for = 'probe' LIMIT ?2+0) p)
		FROM (SELECT count(*) FILTER (WHERE not_before <= ?1) AS n, count(*) FILTER (WHERE not_before > ?1) AS later,
			min(id) FILTER (WHERE not_before <= ?1) AS oldest
			FROM (SELECT id, not_before FROM turns INDEXED BY turns_queued WHERE state = 'queued' LIMIT ?2+0) w) q`
	queryRunningBacklog = `SELECT count(*), ifnull(min(started_at), 0) FROM turns INDEXED BY turns_run WHERE state = 'running'`
	queryLiveRuns       = `SELECT runtime, count(*) FROM runs INDEXED BY runs_unended WHERE ended_at IS NULL GROUP BY runtime`
)
