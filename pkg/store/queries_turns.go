package store

// The statements on turns, runs, sessions and what belongs to them; see queries.go.
const (
	queryTurn       = `SELECT ` + turnColumns + ` FROM turns t WHERE t.id = ?`
	queryLastTurnID = `SELECT ifnull(max(id), 0) FROM turns`
	queryOpenTurns  = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') ORDER BY t.id`
	queryRunTurns = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = ? ORDER BY t.id`
	queryTurns = `SELECT ` + turnColumns +
		` FROM turns t WHERE (?1 = '' OR t.state = ?1) AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryOpenState = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') AND t.state = ?1||''
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryFailedState = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_state WHERE t.state IN ('failed', 'cancelled') AND t.state = ?1||''
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryChatTurns = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_chat WHERE t.chat_jid = ?1 AND (?2 = '' OR t.state = ?2)
		AND t.id < ?3 ORDER BY t.id DESC LIMIT ?4+0`
	queryFolderTurns = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_folder WHERE t.folder = ?1 AND t.started_at IS NOT NULL
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryLastAnswered = `SELECT observed_upto, ifnull(ended_at, 0) FROM turns INDEXED BY turns_session WHERE folder = ? AND topic = ? AND state = 'done'
		AND id < ? ORDER BY id DESC LIMIT 1`
	queryLastHome = `SELECT routed_to FROM (SELECT routed_to, reason FROM messages INDEXED BY messages_chat
		WHERE ` + spoken + ` AND chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE reason IN ('route', 'engaged', 'sticky_target', 'address') LIMIT 1`
	queryLastUser = `SELECT id, sender FROM (SELECT id, sender, direction, is_bot_message, source, reason FROM messages INDEXED BY messages_chat
		WHERE ` + spoken + ` AND chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE direction = 'in' AND is_bot_message = 0 AND source <> 'tool'
		AND ifnull(reason, '') <> 'quoted' LIMIT 1`
	queryLastTurnAt = `SELECT started_at FROM turns INDEXED BY turns_folder WHERE folder = ? AND id <> ? AND started_at IS NOT NULL
		ORDER BY id DESC LIMIT 1`
	queryDelegations = `SELECT count(*) FROM turns WHERE root_turn_id = ? AND kind = 'delegated'`
	queryDelegated   = `SELECT ` + turnColumns +
		` FROM turns t WHERE t.root_turn_id = ? AND t.kind = 'delegated' ORDER BY t.id`

	// Whether a turn is open and no agent works on it.
	queryWaits = `SELECT EXISTS (SELECT 1 FROM turns t WHERE t.id = ?1 AND (t.state = 'queued' OR t.state = 'running'
		AND EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = t.run_id AND o.id < t.id)
		AND NOT EXISTS (SELECT 1 FROM turn_progress p WHERE p.turn_id = t.id)))`
	queryMark = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_turn
		WHERE m.turn_id = ? AND m.direction = 'out' AND m.source = 'waiting' ORDER BY m.id DESC`
	queryMarkOf = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_target
		WHERE m.chat_jid = ? AND m.target_id = ? AND m.direction = 'out' AND m.source = 'waiting' ORDER BY m.id DESC LIMIT 1`
	// Of a row made from another, such as one whose #name was cut off, that one is marked.
	markableRow = `SELECT m.chat_jid, m.thread_id, m.topic, ifnull(m.platform_id, ifnull(o.platform_id, '')), m.sender, m.verb, m.addressed, ifnull(c.kind, '')
		FROM messages m LEFT JOIN messages o ON o.id = m.derived_from AND o.chat_jid = m.chat_jid LEFT JOIN chats c ON c.jid = m.chat_jid
		WHERE m.direction = 'in' AND m.verb IN ('', 'message', 'mention', 'reply') AND `
	queryMarkable       = markableRow + `m.id = ?`
	queryMarkableOfTurn = markableRow + `m.turn_id = ? ORDER BY m.id`
	queryAsleep         = `SELECT m.chat_jid, m.thread_id, m.topic, m.platform_id, m.sender, m.verb, m.addressed, ifnull(c.kind, '')
		FROM messages m INDEXED BY messages_undecided LEFT JOIN chats c ON c.jid = m.chat_jid
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid >= ?1 AND m.chat_jid < ?2 AND m.received_at <= ?3 AND m.received_at > ?4
		AND m.verb IN ('', 'message', 'mention', 'reply') AND m.platform_id IS NOT NULL
		AND (m.addressed = 1 OR m.verb IN ('mention', 'reply') OR c.kind = 'dm')
		AND NOT EXISTS (SELECT 1 FROM messages k INDEXED BY messages_target
			WHERE k.chat_jid = m.chat_jid AND k.target_id = m.platform_id AND k.source = 'waiting' AND k.content = ?5)
		ORDER BY m.id LIMIT 20`
	updateCancelMark = `UPDATE messages SET out_state = 'cancelled' WHERE id = ? AND out_state = 'queued'`
	queryReacted     = `SELECT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_target WHERE m.chat_jid = ? AND m.target_id = ?
		AND m.direction = 'out' AND m.kind = 'reaction' AND m.source IN ('tool', 'waiting') AND m.content NOT LIKE '-%' AND m.id > ?)`
	// Whether a turn, or an earlier one of its topic, has said anything.
	querySaid = `SELECT EXISTS (SELECT 1 FROM turns INDEXED BY turns_session WHERE folder = ?1 AND topic = ?2 AND state = 'done' AND frames > 0)
		OR EXISTS (SELECT 1 FROM messages m INDEXED BY messages_turn WHERE m.turn_id = ?3 AND m.direction = 'out' AND m.source <> 'waiting')`
	// Sessions of requests between groups; ':' comes after the digits.
	queryOldRequests = `SELECT s.group_folder, s.topic FROM sessions s WHERE s.topic >= '#d0' AND s.topic < '#d:' AND s.updated_at < ?1
		AND NOT EXISTS (SELECT 1 FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') AND t.folder = s.group_folder AND t.topic = s.topic)`
	queryFoldedInto = `SELECT ` + turnColumns + ` FROM turns t WHERE t.answered_with = ? ORDER BY t.id`

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
		reason = '', error = '', error_kind = '', started_at = NULL, ended_at = NULL, answered_with = NULL
		WHERE id = ? AND (state IN ('failed', 'cancelled') OR state = 'queued' AND not_before > 0)`
	updateFrame   = `UPDATE turns SET frames = frames + ?, observed_upto = ? WHERE id = ?`
	updateEndTurn = `UPDATE turns SET state = ?1, reason = ?2, error = ?3, error_kind = ?4, ended_at = ?5, attempts = attempts + CASE ?1 WHEN 'failed' THEN 1 ELSE 0 END,
		frames = frames + ?7, observed_upto = max(observed_upto, ?8), answered_with = ?9 WHERE id = ?6 AND state IN ('queued', 'running')`

	upsertProgress = `INSERT INTO turn_progress (turn_id, state, text, plan, tools, updated_at)
		SELECT id, ?3, ?4, ?5, ?6, ?7 FROM turns WHERE id = ?1 AND run_id = ?2 AND state = 'running'
		ON CONFLICT (turn_id) DO UPDATE SET state = excluded.state, text = excluded.text, plan = excluded.plan, tools = excluded.tools,
		updated_at = excluded.updated_at`
	updateEndProgress = `UPDATE turn_progress SET text = '' WHERE turn_id = ?`
	queryProgress     = `SELECT state, text, plan, tools, updated_at FROM turn_progress WHERE turn_id = ?`
	updateUsage       = `UPDATE turns SET input_tokens = ifnull(input_tokens, 0) + ?, output_tokens = ifnull(output_tokens, 0) + ?,
		cost_usd = ifnull(cost_usd, 0) + ?, context_used = coalesce(nullif(?, 0), context_used), context_size = coalesce(nullif(?, 0), context_size)
		WHERE id = ?`
	queryUsage = `SELECT ifnull(input_tokens, 0), ifnull(output_tokens, 0), ifnull(cost_usd, 0), ifnull(context_used, 0), ifnull(context_size, 0)
		FROM turns WHERE id = ?`

	// ?4 bounds the count; the oldest is found by the first match.
	queryCountOpen = `SELECT (SELECT count(*) FROM (SELECT 1 FROM turns t INDEXED BY turns_open WHERE ` + openAtPlace +
		` LIMIT ?4+0) o), r.running,
		ifnull(r.begun, 0), ifnull((SELECT t.id FROM turns t INDEXED BY turns_open WHERE ` + openAtPlace + ` ORDER BY t.id LIMIT 1), 0)
		FROM (SELECT count(*) AS running, min(nullif(t.started_at, 0)) AS begun FROM turns t INDEXED BY turns_run
			WHERE t.state = 'running' AND ` + atPlace + `) r`
	queryRunningPlaces = `SELECT DISTINCT t.place FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.chat_jid = ? ORDER BY 1`
	queryWebWorking    = `SELECT DISTINCT t.chat_jid, t.place FROM turns t INDEXED BY turns_run
		WHERE t.state = 'running' AND t.chat_jid >= 'web:' AND t.chat_jid < 'web;' ORDER BY 1, 2`
	// Of running turns whose agents have said something of their work.
	queryChatWork = `SELECT t.id, t.place, ifnull(t.started_at, 0), p.updated_at FROM turns t INDEXED BY turns_run JOIN turn_progress p ON p.turn_id = t.id
		WHERE t.state = 'running' AND t.chat_jid = ? ORDER BY t.id`
	queryWebWork = `SELECT t.id, t.chat_jid, p.updated_at FROM turns t INDEXED BY turns_run JOIN turn_progress p ON p.turn_id = t.id
		WHERE t.state = 'running' AND t.chat_jid >= 'web:' AND t.chat_jid < 'web;' ORDER BY t.id`
	queryRunningTurns = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' ORDER BY t.id LIMIT ?+0`
	queryRunningCount = `SELECT count(*) FROM turns INDEXED BY turns_run WHERE state = 'running'`
	queryQueuedTurns  = `SELECT ` + turnColumns + ` FROM turns t WHERE t.id IN
		(SELECT id FROM turns INDEXED BY turns_queued WHERE state = 'queued' ORDER BY id LIMIT ?+0) ORDER BY t.id`

	// The lanes with queued turns: one step per lane, not per turn.
	queryQueuedLanes = `WITH RECURSIVE lanes(lane) AS (
		SELECT min(lane) FROM turns INDEXED BY turns_queued WHERE state = 'queued'
		UNION ALL SELECT (SELECT min(lane) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND lane > lanes.lane)
		FROM lanes WHERE lanes.lane IS NOT NULL)
		SELECT lane, (SELECT min(id) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND turns.lane = lanes.lane)
		FROM lanes WHERE lane IS NOT NULL ORDER BY 2`
	// The queued turns of a lane, with whether an older one of the conversation waits, whether a /stop covers it, and
	// of one that waits at the time ?4 whether it is of a time over a minute (maxSkew) later: the clock was set back.
	queryNextQueued = `SELECT t.id, t.not_before, EXISTS (SELECT 1 FROM turns o INDEXED BY turns_conversation WHERE o.state = 'queued'
		AND o.lane = t.lane AND o.chat_jid = t.chat_jid AND o.topic = t.topic AND o.id < t.id),
		EXISTS (SELECT 1 FROM stops s WHERE s.chat_jid = t.chat_jid AND t.id <= s.through_turn AND (s.topic IS NULL OR s.topic = t.topic)),
		CASE WHEN t.not_before > ?4 THEN max(t.created_at, ifnull(t.started_at, 0)) > ?4 + 60000 ELSE FALSE END
		FROM turns t INDEXED BY turns_queued WHERE t.state = 'queued' AND t.lane = ?1 AND t.id > ?2 ORDER BY t.id LIMIT ?3+0`
	queryNewestQueued = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_conversation
		WHERE t.state = 'queued' AND t.lane = ? AND t.chat_jid = ? AND t.topic = ? ORDER BY t.id DESC LIMIT 1`
	queryQueuedCount = `SELECT count(*) FROM turns INDEXED BY turns_queued WHERE state = 'queued'`
	// A run that waits for the answer to a question is not busy.
	queryBusyRuns = `SELECT count(*) FROM runs b INDEXED BY runs_unended WHERE b.ended_at IS NULL
		AND EXISTS (SELECT 1 FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = b.id)
		AND NOT EXISTS (SELECT 1 FROM turns t INDEXED BY turns_run CROSS JOIN asks a ON a.turn_id = t.id
			WHERE t.state = 'running' AND t.run_id = b.id AND a.state = 'open' AND substr(a.ask_id, 1, 6) <> 'budget')`
	// The idle run of an address that may take a turn of lane ?5 and folder ?1 at once: no turn of the lane waits, the
	// group is not probed, and a slot is free. One is where there are no more runs than slots, which is the usual case
	// and needs no look at every run's turns.
	queryRunFor = `SELECT r.id FROM runs r INDEXED BY runs_live
		WHERE r.closed_at IS NULL AND r.folder = ?1 AND r.topic = ?2 AND r.chat_jid = ?3 AND r.thread_id = ?4 AND r.draining = 0
		AND NOT EXISTS (SELECT 1 FROM turns w INDEXED BY turns_queued WHERE w.state = 'queued' AND w.lane = ?5)
		AND NOT EXISTS (SELECT 1 FROM group_failures WHERE folder = ?1 AND count >= ?6)
		AND NOT EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = r.id)
		AND ((SELECT count(*) FROM runs u INDEXED BY runs_unended WHERE u.ended_at IS NULL) <= ?7 OR (` + queryBusyRuns + `) < ?7)`
	queryRunLoad = `SELECT count(*), ifnull(max(CASE WHEN attempts > 0 OR kind = 'delegated' THEN 1 ELSE 0 END), 0) FROM turns INDEXED BY turns_run
		WHERE state = 'running' AND run_id = ?`
	// A turn waits for the files of its rows, and for those of the posts that these answer, until none is pending or to
	// be transcribed.
	queryFilesReady = `SELECT t.id, t.lane FROM turns t INDEXED BY turns_files WHERE t.state = 'queued' AND t.waits_for = 'files'
		AND NOT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_turn WHERE m.turn_id = t.id AND (m.pending_files > 0
		OR EXISTS (SELECT 1 FROM messages a WHERE a.chat_jid = m.chat_jid AND a.platform_id = m.reply_to_id AND a.pending_files > 0 AND a.files_wanted = 1)))
		AND NOT EXISTS (SELECT 1 FROM transcripts x INDEXED BY transcripts_wanted WHERE x.state = 'wanted' AND x.turn_id = t.id)`
	updateWaitOver = `UPDATE turns SET waits_for = '', not_before = 0 WHERE id = ? AND state = 'queued' AND waits_for = ?`

	queryRunningOfChat = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.chat_jid = ? ORDER BY t.id`
	queryQueuedOfChat = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running')
		AND t.state = 'queued' AND t.chat_jid = ? AND t.id > ? AND t.id <= ? ORDER BY t.id LIMIT ?+0`
	// Between groups, ';' comes after ':'.
	queryOpenBetween = `SELECT ` + turnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running')
		AND t.chat_jid >= 'group:' AND t.chat_jid < 'group;' LIMIT ?+0`
	queryUndecidedBetween = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid >= 'group:' AND m.chat_jid < 'group;' LIMIT ?+0`
	queryStoppedRows = `SELECT m.id, m.sender, m.topic, m.thread_id FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid = ? AND m.id > ? AND m.id < ? ORDER BY m.id LIMIT ?+0`

	queryStops = `SELECT ` + stopColumns +
		` FROM stops s LEFT JOIN messages m ON m.id = s.before_message ORDER BY s.id`
	queryStopsOfChat = `SELECT ` + stopColumns + ` FROM stops s LEFT JOIN messages m ON m.id = s.before_message
		WHERE s.chat_jid = ? ORDER BY s.id` // an empty table, but for seconds
	insertStop = `INSERT INTO stops (chat_jid, topic, sender, before_message, through_turn, after_message, after_turn, except_rows, created_at) VALUES (?,?,?,?,?,?,?,?,?)`
	updateStop = `UPDATE stops SET after_message = ?, after_turn = ? WHERE id = ?`
	deleteStop = `DELETE FROM stops WHERE id = ?`

	queryFailing = `SELECT folder, problem, count, since, probe_at FROM group_failures WHERE count >= ? ORDER BY folder`
	queryProbeAt = `SELECT max(probe_at, 1) FROM group_failures WHERE folder = ? AND count >= ?`
	putFailures  = `INSERT INTO group_failures (folder, problem, count, since, probe_at) VALUES (?,?,1,?,0)
		ON CONFLICT (folder) DO UPDATE SET count = CASE WHEN group_failures.problem = excluded.problem OR group_failures.count >= 3 THEN group_failures.count + 1 ELSE 1 END,
		since = CASE WHEN group_failures.problem = excluded.problem OR group_failures.count >= 3 THEN group_failures.since ELSE excluded.since END, problem = excluded.problem
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
	insertRun       = `INSERT INTO runs (folder, topic, chat_jid, thread_id, runtime, owner, started_at) VALUES (?,?,?,?,?,?,?)`
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
	// The session of one agent: it is the topic's, or kept while another agent answers.
	queryAgentSession = `SELECT session_id FROM sessions WHERE group_folder = ?1 AND topic = ?2 AND agent = ?3
		UNION ALL SELECT session_id FROM kept_sessions WHERE group_folder = ?1 AND topic = ?2 AND agent = ?3 LIMIT 1`
	putSession = `INSERT INTO sessions (group_folder, topic, agent, session_id, updated_at) VALUES (?,?,?,?,?)
		ON CONFLICT (group_folder, topic) DO UPDATE SET agent = excluded.agent, session_id = excluded.session_id, updated_at = excluded.updated_at`
	putKeptSession = `INSERT INTO kept_sessions (group_folder, topic, agent, session_id, updated_at)
		SELECT group_folder, topic, agent, session_id, updated_at FROM sessions WHERE group_folder = ? AND topic = ? AND agent <> ?
		ON CONFLICT (group_folder, topic, agent) DO UPDATE SET session_id = excluded.session_id, updated_at = excluded.updated_at`
	deleteSession      = `DELETE FROM sessions WHERE group_folder = ? AND topic = ?`
	deleteAgentSession = `DELETE FROM sessions WHERE group_folder = ? AND topic = ? AND agent = ?`
	deleteKeptSessions = `DELETE FROM kept_sessions WHERE group_folder = ? AND topic = ?`
	deleteAgentKept    = `DELETE FROM kept_sessions WHERE group_folder = ? AND topic = ? AND agent = ?`
	queryLastAgent     = `SELECT agent FROM session_log WHERE folder = ? AND topic = ? AND run_id < ? AND message_count > 0 ORDER BY id DESC LIMIT 1`
	insertLog          = `INSERT INTO session_log (run_id, started_at, folder, topic, agent, session_id) VALUES (?1,?2,?3,?4,?5,?6)`
	updateLog          = `UPDATE session_log SET session_id = CASE WHEN ?1 <> '' THEN ?1 ELSE session_id END,
		message_count = message_count + CASE WHEN ?2 THEN (SELECT count(*) FROM messages WHERE turn_id = ?3 AND direction = 'in') ELSE 0 END
		WHERE run_id = ?4`
	updateEndLog = `UPDATE session_log SET ended_at = ?1, error = ?2,
		result = CASE WHEN ?2 <> '' THEN 'error' ELSE 'ok' END WHERE run_id = ?3 AND ended_at IS NULL`
	queryPastSessions = `SELECT started_at, ifnull(ended_at,0), agent, session_id, result, error, message_count FROM session_log
		WHERE folder = ? AND topic = ? AND run_id < ? ORDER BY id DESC LIMIT ?+0`

	queryAgentModels = `SELECT models, current FROM agent_models WHERE folder = ? AND agent = ?`
	putAgentModels   = `INSERT INTO agent_models (folder, agent, models, current, updated_at) VALUES (?,?,?,?,?)
		ON CONFLICT (folder, agent) DO UPDATE SET models = excluded.models, current = excluded.current, updated_at = excluded.updated_at`

	// The last: whether the chat has a row after ?4 that is neither of the turn nor an answer of its run.
	queryPromptFacts = `SELECT EXISTS (SELECT 1 FROM system_messages WHERE folder = ?1 AND turn_id IS NULL),
		EXISTS (SELECT 1 FROM system_messages WHERE turn_id = ?2), ifnull((SELECT value FROM router_state WHERE key = 'decision_seq'), 0),
		(SELECT value FROM counters WHERE name = 'routing'), ifnull(c.kind, ''), ifnull(substr(c.title, 1, 256), ''),
		EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat WHERE m.chat_jid = ?3 AND m.id > ?4 AND m.turn_id IS DISTINCT FROM ?2
		AND NOT (m.direction = 'out' AND EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn_id AND t.run_id = ?5)))
		FROM (SELECT 1) one LEFT JOIN chats c ON c.jid = ?3`
	querySystemOfTurn = `SELECT id, origin, event, body FROM system_messages WHERE turn_id = ? ORDER BY id`
	insertSystem      = `INSERT INTO system_messages (folder, origin, event, body, created_at) VALUES (?,?,?,?,?)`
	updateClaimSystem = `UPDATE system_messages SET turn_id = ?1 WHERE folder = ?2 AND turn_id IS NULL
		AND EXISTS (SELECT 1 FROM turns WHERE id = ?1 AND ended_at IS NULL)`
	queryUnreadSystem   = `SELECT count(*) FROM (SELECT 1 FROM system_messages WHERE folder = ? AND turn_id IS NULL AND event = ? ORDER BY id DESC LIMIT ?+0) s`
	updateReleaseSystem = `UPDATE system_messages SET turn_id = NULL WHERE turn_id = ?`
	deleteSystem        = `DELETE FROM system_messages WHERE turn_id = ? AND (? OR event = 'new_session')`
)
