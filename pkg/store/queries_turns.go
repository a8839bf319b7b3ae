package store

// The statements on turns, runs, sessions and what belongs to them; see queries.go.
const (
	queryTurn       = `SELECT ` + turnColumns + ` FROM turns t WHERE t.id = ?`
	queryLastTurnID = `SELECT ifnull(max(id), 0) FROM turns`
	queryOpenTurns  = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') ORDER BY t.id`
	queryRunTurns   = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = ? ORDER BY t.id`
	queryTurns      = `SELECT ` + turnColumns + ` FROM turns t WHERE ?1 = '' OR t.state = ?1 ORDER BY t.id DESC LIMIT ?2+0`
	queryOpenState  = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') AND t.state = ?1||''
		ORDER BY t.id DESC LIMIT ?2+0`
	queryFailedState = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_state WHERE t.state IN ('failed', 'cancelled') AND t.state = ?1||''
		ORDER BY t.id DESC LIMIT ?2+0`
	queryChatTurns = `SELECT ` + turnColumns + ` FROM turns t WHERE t.chat_jid = ?1 AND (?2 = '' OR t.state = ?2)
		ORDER BY t.id DESC LIMIT ?3+0`
	queryLastAnswered = `SELECT observed_upto, ifnull(ended_at, 0) FROM turns INDEXED BY turns_session WHERE folder = ? AND topic = ? AND state = 'done'
		AND id < ? ORDER BY id DESC LIMIT 1`
	queryLastHome = `SELECT routed_to FROM (SELECT routed_to, reason FROM messages INDEXED BY messages_chat
		WHERE ` + spoken + ` AND chat_jid = ? ORDER BY id DESC LIMIT 1000) WHERE reason IN ('route', 'engaged', 'sticky_target', 'address') LIMIT 1`
	queryLastUser = `SELECT sender FROM (SELECT sender, direction, is_bot_message, source FROM messages INDEXED BY messages_chat
		WHERE ` + spoken + ` AND chat_jid = ? ORDER BY id DESC LIMIT 1000) WHERE direction = 'in' AND is_bot_message = 0 AND source <> 'tool' LIMIT 1`
	queryLastTurnAt = `SELECT started_at FROM turns INDEXED BY turns_folder WHERE folder = ? AND id <> ? AND started_at IS NOT NULL
		ORDER BY id DESC LIMIT 1`
	queryDelegations = `SELECT count(*) FROM turns WHERE root_turn_id = ? AND kind = 'delegated'`
	queryDelegated   = `SELECT ` + turnColumns + ` FROM turns t WHERE t.root_turn_id = ? AND t.kind = 'delegated' ORDER BY t.id`

	insertTurn = `INSERT INTO turns (run_id, kind, folder, chat_jid, topic, thread_id, place, reply_to,
		trigger_message_id, claims_engagement, surface, ceiling, state, not_before, waits_for, row_count, row_bytes,
		depth, root_turn_id, created_at, started_at)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	updateJoin = `UPDATE turns SET reply_to = ?, trigger_message_id = ?, claims_engagement = ?, surface = ?, ceiling = ?, not_before = ?,
		waits_for = ?, row_count = ?, row_bytes = ? WHERE id = ? AND state = 'queued'`
	updateTake = `UPDATE turns SET state = 'running', run_id = ?, started_at = ?, waits_for = '', not_before = 0
		WHERE id = ? AND state = 'queued'`
	updateRequeue = `UPDATE turns SET state = 'queued', run_id = NULL, attempts = attempts + ?, waits_for = ?, not_before = ?,
		error = ?, error_kind = ? WHERE id = ? AND state IN ('queued', 'running')`
	updateRevive = `UPDATE turns SET state = 'queued', run_id = NULL, attempts = 0, not_before = 0, waits_for = '', frames = 0,
		reason = '', error = '', error_kind = '', started_at = NULL, ended_at = NULL
		WHERE id = ? AND (state IN ('failed', 'cancelled') OR state = 'queued' AND not_before > 0)`
	updateFrame   = `UPDATE turns SET frames = frames + ?, observed_upto = ? WHERE id = ?`
	updateEndTurn = `UPDATE turns SET state = ?1, reason = ?2, error = ?3, error_kind = ?4, ended_at = ?5, attempts = attempts + (?1 = 'failed'),
		frames = frames + ?7, observed_upto = max(observed_upto, ?8) WHERE id = ?6 AND state IN ('queued', 'running')`

	// ?4 bounds the count; the oldest is found by the first match.
	queryCountOpen = `SELECT (SELECT count(*) FROM (SELECT 1 FROM turns t INDEXED BY turns_open WHERE ` + openAtPlace + ` LIMIT ?4+0)), r.running,
		ifnull(r.begun, 0), ifnull((SELECT t.id FROM turns t INDEXED BY turns_open WHERE ` + openAtPlace + ` ORDER BY t.id LIMIT 1), 0)
		FROM (SELECT count(*) AS running, min(nullif(t.started_at, 0)) AS begun FROM turns t INDEXED BY turns_run
			WHERE t.state = 'running' AND ` + atPlace + `) r`
	queryRunningPlaces = `SELECT DISTINCT t.place FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.chat_jid = ? ORDER BY 1`
	queryRunningTurns  = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' ORDER BY t.id LIMIT ?+0`
	queryRunningCount  = `SELECT count(*) FROM turns INDEXED BY turns_run WHERE state = 'running'`
	queryQueuedTurns   = `SELECT ` + turnColumns + ` FROM turns t WHERE t.id IN
		(SELECT id FROM turns INDEXED BY turns_queued WHERE state = 'queued' ORDER BY id LIMIT ?+0) ORDER BY t.id`

	// The lanes with queued turns: one step per lane, not per turn.
	queryQueuedLanes = `WITH RECURSIVE lanes(lane) AS (
		SELECT min(lane) FROM turns INDEXED BY turns_queued WHERE state = 'queued'
		UNION ALL SELECT (SELECT min(lane) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND lane > lanes.lane)
		FROM lanes WHERE lanes.lane IS NOT NULL)
		SELECT lane, (SELECT min(id) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND turns.lane = lanes.lane)
		FROM lanes WHERE lane IS NOT NULL ORDER BY 2`
	// The queued turns of a lane, with whether an older one of the conversation waits, and whether a /stop covers it.
	queryNextQueued = `SELECT t.id, t.not_before, EXISTS (SELECT 1 FROM turns o INDEXED BY turns_conversation WHERE o.state = 'queued'
		AND o.lane = t.lane AND o.chat_jid = t.chat_jid AND o.topic = t.topic AND o.id < t.id),
		EXISTS (SELECT 1 FROM stops s WHERE s.chat_jid = t.chat_jid AND t.id <= s.through_turn AND (s.topic IS NULL OR s.topic = t.topic))
		FROM turns t INDEXED BY turns_queued WHERE t.state = 'queued' AND t.lane = ? AND t.id > ? ORDER BY t.id LIMIT ?+0`
	queryNewestQueued = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_conversation
		WHERE t.state = 'queued' AND t.lane = ? AND t.chat_jid = ? AND t.topic = ? ORDER BY t.id DESC LIMIT 1`
	queryQueuedCount = `SELECT count(*) FROM turns INDEXED BY turns_queued WHERE state = 'queued'`
	queryBusyRuns    = `SELECT count(*) FROM runs b INDEXED BY runs_unended WHERE b.ended_at IS NULL
		AND EXISTS (SELECT 1 FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = b.id)`
	// The live run of an address that may take a turn of lane ?5 and folder ?1 at once: no turn of the lane waits, the
	// group is not probed, and the run has room beside its turns, all of which may share it. One that has turns takes
	// another unless a lane waits for a slot; else a slot must be free. It is where there are no more runs than slots,
	// which is the usual case and needs no look at every run's turns.
	queryRunFor = `SELECT r.id FROM runs r INDEXED BY runs_live
		WHERE r.closed_at IS NULL AND r.folder = ?1 AND r.topic = ?2 AND r.chat_jid = ?3 AND r.thread_id = ?4 AND r.draining = 0
		AND NOT EXISTS (SELECT 1 FROM turns w INDEXED BY turns_queued WHERE w.state = 'queued' AND w.lane = ?5)
		AND NOT EXISTS (SELECT 1 FROM group_failures WHERE folder = ?1 AND count >= ?6)
		AND NOT EXISTS (SELECT 1 FROM turns a INDEXED BY turns_run WHERE a.state = 'running' AND a.run_id = r.id
			AND (a.attempts > 0 OR a.kind = 'delegated'))
		AND (SELECT count(*) FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = r.id) < ?7
		AND (EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = r.id)
			AND NOT EXISTS (SELECT 1 FROM turns w INDEXED BY turns_queued WHERE w.state = 'queued')
			OR (SELECT count(*) FROM runs u INDEXED BY runs_unended WHERE u.ended_at IS NULL)
				+ EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = r.id) <= ?8
			OR (` + queryBusyRuns + `) < ?8)`
	queryRunLoad = `SELECT count(*), ifnull(max(attempts > 0 OR kind = 'delegated'), 0) FROM turns INDEXED BY turns_run
		WHERE state = 'running' AND run_id = ?`
	// A turn waits for its rows' files until none is pending.
	queryFilesReady = `SELECT t.id, t.lane FROM turns t INDEXED BY turns_files WHERE t.state = 'queued' AND t.waits_for = 'files'
		AND NOT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_turn WHERE m.turn_id = t.id AND m.pending_files > 0)`
	updateWaitOver = `UPDATE turns SET waits_for = '', not_before = 0 WHERE id = ? AND state = 'queued' AND waits_for = ?`

	queryRunningOfChat = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.chat_jid = ? ORDER BY t.id`
	queryQueuedOfChat  = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running')
		AND t.state = 'queued' AND t.chat_jid = ? AND t.id > ? AND t.id <= ? ORDER BY t.id LIMIT ?+0`
	queryStoppedRows = `SELECT m.id, m.sender, m.topic, m.thread_id FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid = ? AND m.id > ? AND m.id < ? ORDER BY m.id LIMIT ?+0`

	queryStops       = `SELECT ` + stopColumns + ` FROM stops ORDER BY id`
	queryStopsOfChat = `SELECT ` + stopColumns + ` FROM stops WHERE chat_jid = ? ORDER BY id` // an empty table, but for seconds
	insertStop       = `INSERT INTO stops (chat_jid, topic, sender, before_message, through_turn, after_message, after_turn, except_rows, created_at) VALUES (?,?,?,?,?,?,?,?,?)`
	updateStop       = `UPDATE stops SET after_message = ?, after_turn = ? WHERE id = ?`
	deleteStop       = `DELETE FROM stops WHERE id = ?`

	queryFailing = `SELECT folder, problem, count, since, probe_at FROM group_failures WHERE count >= ? ORDER BY folder`
	queryProbeAt = `SELECT max(probe_at, 1) FROM group_failures WHERE folder = ? AND count >= ?`
	putFailures  = `INSERT INTO group_failures (folder, problem, count, since, probe_at) VALUES (?,?,1,?,0)
		ON CONFLICT (folder) DO UPDATE SET count = CASE WHEN problem = excluded.problem OR count >= 3 THEN count + 1 ELSE 1 END,
		since = CASE WHEN problem = excluded.problem OR count >= 3 THEN since ELSE excluded.since END, problem = excluded.problem
		RETURNING count`
	updateProbeAt  = `UPDATE group_failures SET probe_at = ? WHERE folder = ?`
	deleteFailures = `DELETE FROM group_failures WHERE folder = ?`
	updateProbed   = `UPDATE turns INDEXED BY turns_probe SET waits_for = '', not_before = 0
		WHERE state = 'queued' AND waits_for = 'probe' AND folder = ? RETURNING lane`

	queryAddressed  = `SELECT verb IN ('mention', 'reply') FROM messages WHERE id = ?`
	queryNotifiedOf = `SELECT EXISTS (SELECT 1 FROM turns INDEXED BY turns_failed WHERE state = 'failed' AND chat_jid = ? AND ended_at > ?
		AND error_kind = ? AND reason = 'agent_error')`
	queryNoticed     = `SELECT EXISTS (SELECT 1 FROM messages WHERE turn_id = ? AND direction = 'out' AND source = 'notice')`
	queryNoticedText = `SELECT EXISTS (SELECT 1 FROM messages WHERE turn_id = ? AND direction = 'out' AND source = 'notice' AND content = ?)`

	queryUnended    = `SELECT ` + runColumns + ` FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL`
	queryRunIsLive  = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND closed_at IS NULL)`
	queryRunTakes   = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND closed_at IS NULL AND draining = 0)`
	insertRun       = `INSERT INTO runs (folder, topic, chat_jid, thread_id, runtime, started_at) VALUES (?,?,?,?,?,?)`
	updateDrain     = `UPDATE runs SET draining = 1 WHERE id = ? AND closed_at IS NULL`
	updateDrainIdle = `UPDATE runs SET draining = 1 WHERE id = ?1 AND closed_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM turns INDEXED BY turns_run WHERE state = 'running' AND run_id = ?1)`
	updateProcess   = `UPDATE runs SET pid = ?, pid_start = ?, label = ? WHERE id = ?`
	updateCloseRun  = `UPDATE runs SET closed_at = ? WHERE id = ? AND closed_at IS NULL`
	updateEndRun    = `UPDATE runs SET ended_at = ? WHERE id = ? AND ended_at IS NULL`
	updateCloseLive = `UPDATE runs SET closed_at = ? WHERE folder = ? AND topic = ? AND closed_at IS NULL RETURNING id`

	// Of the runs that began after the turn all are looked at.
	queryRunsDuring = `SELECT ` + runColumns + `, l.result, l.error FROM session_log l INDEXED BY session_log_topic
		JOIN runs r ON r.id = l.run_id WHERE l.folder = ?1 AND l.topic = ?2 AND r.started_at <= ?4
		AND ifnull(r.ended_at, ?4) >= ?3 ORDER BY l.id DESC LIMIT ?5+0`
	queryParts = `SELECT message_id, part, state, attempts, not_before, ifnull(platform_id,''), ifnull(error_class,''),
		ifnull(error,''), updated_at FROM deliveries WHERE message_id = ? ORDER BY part`
	queryOwnReplies = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_chat
		WHERE m.chat_jid = ?1 AND m.id > ?2 AND m.id <= ?2 + 10000 AND m.reply_to_id = ?3
		AND m.direction = 'out' AND m.turn_id IS NULL ORDER BY m.id`

	queryFoldersEver = `SELECT folder FROM registered_groups UNION SELECT group_folder FROM sessions
		UNION SELECT folder FROM turns ORDER BY 1`
	// A turn that never started has made no files.
	queryFolderUsed = `SELECT EXISTS (SELECT 1 FROM registered_groups WHERE folder = ?1) OR EXISTS (SELECT 1 FROM sessions WHERE group_folder = ?1)
		OR EXISTS (SELECT 1 FROM turns INDEXED BY turns_folder WHERE folder = ?1 AND started_at IS NOT NULL)`
	querySession = `SELECT session_id FROM sessions WHERE group_folder = ? AND topic = ?`
	putSession   = `INSERT INTO sessions (group_folder, topic, session_id, updated_at) VALUES (?,?,?,?)
		ON CONFLICT (group_folder, topic) DO UPDATE SET session_id = excluded.session_id, updated_at = excluded.updated_at`
	deleteSession = `DELETE FROM sessions WHERE group_folder = ? AND topic = ?`
	insertLog     = `INSERT INTO session_log (run_id, started_at, folder, topic, session_id)
		VALUES (?1,?2,?3,?4, ifnull((SELECT session_id FROM sessions WHERE group_folder = ?3 AND topic = ?4), ''))`
	updateLog = `UPDATE session_log SET session_id = CASE WHEN ?1 <> '' THEN ?1 ELSE session_id END,
		message_count = message_count + CASE WHEN ?2 THEN (SELECT count(*) FROM messages WHERE turn_id = ?3 AND direction = 'in') ELSE 0 END
		WHERE run_id = ?4`
	updateEndLog = `UPDATE session_log SET ended_at = ?1, error = ?2,
		result = CASE WHEN ?2 <> '' THEN 'error' ELSE 'ok' END WHERE run_id = ?3 AND ended_at IS NULL`
	queryPastSessions = `SELECT started_at, ifnull(ended_at,0), session_id, result, error, message_count FROM session_log
		WHERE folder = ? AND topic = ? AND run_id < ? ORDER BY id DESC LIMIT ?+0`

	// The last: whether the chat has a row after ?4 that is neither of the turn nor an answer of its run.
	queryPromptFacts = `SELECT EXISTS (SELECT 1 FROM system_messages WHERE folder = ?1 AND turn_id IS NULL),
		EXISTS (SELECT 1 FROM system_messages WHERE turn_id = ?2), ifnull((SELECT value FROM router_state WHERE key = 'decision_seq'), 0),
		(SELECT value FROM counters WHERE name = 'routing'), ifnull(c.kind, ''), ifnull(substr(c.title, 1, 256), ''),
		EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat WHERE m.chat_jid = ?3 AND m.id > ?4 AND m.turn_id IS NOT ?2
		AND NOT (m.direction = 'out' AND EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn_id AND t.run_id = ?5)))
		FROM (SELECT 1) LEFT JOIN chats c ON c.jid = ?3`
	querySystemOfTurn = `SELECT id, origin, event, body FROM system_messages WHERE turn_id = ? ORDER BY id`
	insertSystem      = `INSERT INTO system_messages (folder, origin, event, body, created_at) VALUES (?,?,?,?,?)`
	updateClaimSystem = `UPDATE system_messages SET turn_id = ?1 WHERE folder = ?2 AND turn_id IS NULL
		AND EXISTS (SELECT 1 FROM turns WHERE id = ?1 AND ended_at IS NULL)`
	updateReleaseSystem = `UPDATE system_messages SET turn_id = NULL WHERE turn_id = ?`
	deleteSystem        = `DELETE FROM system_messages WHERE turn_id = ? AND (? OR event = 'new_session')`
)
