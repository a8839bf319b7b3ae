package store

// The statements on turns, runs, sessions and what belongs to them; see queries.go.
const (
	queryTurn = `SELECT ` + TurnColumns + ` FROM turns t WHERE t.id = ?`

	queryOpenTurns = `SELECT ` + TurnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') ORDER BY t.id`

	queryTurns = `SELECT ` + TurnColumns +
		` FROM turns t WHERE (?1 = '' OR t.state = ?1) AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryOpenState = `SELECT ` + TurnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') AND t.state = ?1||''
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryFailedState = `SELECT ` + TurnColumns +
		` FROM turns t INDEXED BY turns_state WHERE t.state IN ('failed', 'cancelled') AND t.state = ?1||''
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryChatTurns = `SELECT ` + TurnColumns +
		` FROM turns t INDEXED BY turns_chat WHERE t.chat_jid = ?1 AND (?2 = '' OR t.state = ?2)
		AND t.id < ?3 ORDER BY t.id DESC LIMIT ?4+0`
	queryFolderTurns = `SELECT ` + TurnColumns +
		` FROM turns t INDEXED BY turns_folder WHERE t.folder = ?1 AND t.started_at IS NOT NULL
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`

	queryLastHome = `SELECT routed_to FROM (SELECT routed_to, reason FROM messages INDEXED BY messages_chat
		WHERE ` + Spoken + ` AND chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE reason IN ('route', 'engaged', 'sticky_target', 'address') LIMIT 1`
	queryLastUser = `SELECT id, sender FROM (SELECT id, sender, direction, is_bot_message, source, reason FROM messages INDEXED BY messages_chat
		WHERE ` + Spoken + ` AND chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE direction = 'in' AND is_bot_message = 0 AND source <> 'tool'
		AND ifnull(reason, '') <> 'quoted' LIMIT 1`

	QueryMark = `SELECT ` + MessageColumns + ` FROM messages m INDEXED BY messages_turn
		WHERE m.turn_id = ? AND m.direction = 'out' AND m.source = 'waiting' ORDER BY m.id DESC`
	queryMarkOf = `SELECT ` + MessageColumns + ` FROM messages m INDEXED BY messages_target
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

	queryFoldedInto = `SELECT ` + TurnColumns + ` FROM turns t WHERE t.answered_with = ? ORDER BY t.id`

	queryProgress = `SELECT state, text, plan, tools, updated_at FROM turn_progress WHERE turn_id = ?`

	queryUsage = `SELECT ifnull(input_tokens, 0), ifnull(output_tokens, 0), ifnull(cost_usd, 0), ifnull(context_used, 0), ifnull(context_size, 0)
		FROM turns WHERE id = ?`

	// an empty table, but for seconds

	queryFailing = `SELECT folder, problem, count, since, probe_at FROM group_failures WHERE count >= ? ORDER BY folder`

	queryUnended = `SELECT ` + RunColumns + ` FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL`

	querySession = `SELECT session_id FROM sessions WHERE group_folder = ? AND topic = ?`

	queryAgentModels = `SELECT models, current FROM agent_models WHERE folder = ? AND agent = ?`

	insertSystem = `INSERT INTO system_messages (folder, origin, event, body, created_at) VALUES (?,?,?,?,?)`
)
