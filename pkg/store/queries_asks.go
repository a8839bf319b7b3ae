package store

// Statements about questions of agents.
const (
	askColumns = `a.id, a.turn_id, a.ask_id, ifnull(a.message_id, 0), a.question, a.options, a.payload_hash, a.who, a.state, ifnull(a.option, ''),
		ifnull(a.answered_by, ''), a.created_at, a.expires_at, ifnull(a.ended_at, 0)`
	queryAsk          = `SELECT ` + askColumns + ` FROM asks a WHERE a.id = ?`
	queryAskByMessage = `SELECT ` + askColumns + ` FROM asks a INDEXED BY asks_message WHERE a.message_id = ?`
	queryTurnAsks     = `SELECT ` + askColumns + ` FROM asks a WHERE a.turn_id = ? ORDER BY a.id`
	queryChatAsks     = `SELECT ` + askColumns +
		` FROM asks a INDEXED BY asks_open CROSS JOIN messages m ON m.id = a.message_id
		WHERE a.state = 'open' AND m.chat_jid = ? AND m.thread_id = ? ORDER BY a.id LIMIT 20`
	queryFolderOpenAsks = `SELECT ` + askColumns +
		` FROM asks a INDEXED BY asks_open CROSS JOIN turns t ON t.id = a.turn_id
		WHERE a.state = 'open' AND t.folder = ? ORDER BY a.id`
	// Those that were asked over a minute (maxSkew) later than now are due as well: the clock was set back.
	queryAsksDue = `SELECT ` + askColumns + ` FROM asks a INDEXED BY asks_open
		WHERE a.state = 'open' AND (a.expires_at <= ?1 OR a.created_at > ?1 + 60000
			OR EXISTS (SELECT 1 FROM messages m WHERE m.id = a.message_id AND m.out_state = 'failed')) ORDER BY a.id LIMIT 100`
	// Open ones are few: each is asked of users, and ends within a day.
	queryOpenAsks = `SELECT ` + askColumns + ` FROM asks a INDEXED BY asks_open WHERE a.state = 'open' ORDER BY a.id`
	updateAskWho  = `UPDATE asks SET who = ? WHERE id = ? AND state = 'open'`

	queryRunOpenAsks = `SELECT DISTINCT t.id FROM turns t INDEXED BY turns_run CROSS JOIN asks a ON a.turn_id = t.id
		WHERE t.state = 'running' AND t.run_id = ? AND a.state = 'open' AND substr(a.ask_id, 1, 6) <> 'budget' ORDER BY 1`

	// Those that a text without a target may have answered at a time: they stand in the thread above it.
	queryAsksOpenAt = `SELECT ` + askColumns + ` FROM (SELECT m.id, m.thread_id FROM messages m INDEXED BY messages_chat
			WHERE m.chat_jid = ?1 AND m.id < ?3 ORDER BY m.id DESC LIMIT 1000) m CROSS JOIN asks a INDEXED BY asks_message ON a.message_id = m.id
		WHERE m.thread_id = ?2 AND a.created_at <= ?4 AND ifnull(a.ended_at, ?4) >= ?4 ORDER BY a.id LIMIT 20`
	querySaidSince = `SELECT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat WHERE m.chat_jid = ?1 AND m.id > ?2 AND m.id < ?3
		AND m.kind IN ('message', 'file', 'poll') AND m.direction = 'out' AND m.source IN ('agent', 'tool', 'reminder', 'broadcast')
		AND m.out_state NOT IN ('failed', 'cancelled') AND m.thread_id = ?4 AND (m.platform <> 'web' OR m.topic = ?5))`
	queryPresses = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_target
		WHERE m.chat_jid = ? AND m.target_id = ? AND m.direction = 'in' AND m.verb = 'answer' ORDER BY m.id LIMIT 20`

	insertAsk = `INSERT INTO asks (turn_id, ask_id, message_id, question, options, payload_hash, who, state, created_at, expires_at)
		VALUES (?,?,?,?,?,?,?,'open',?,?)`
	updateAnswerAsk = `UPDATE asks SET state = 'answered', option = ?, answered_by = ?, ended_at = ? WHERE id = ? AND state = 'open'`
	updateExpireAsk = `UPDATE asks SET state = 'expired', ended_at = ? WHERE id = ? AND state = 'open'`
	// A question that no adapter has begun to send is not sent any more.
	updateCancelAsk = `UPDATE messages SET out_state = 'cancelled' WHERE id = ? AND out_state = 'queued'`

	upsertAsking = `INSERT INTO turn_progress (turn_id, state, updated_at) SELECT id, 'requires_action', ?2 FROM turns WHERE id = ?1 AND state = 'running'
		ON CONFLICT (turn_id) DO UPDATE SET state = 'requires_action', updated_at = excluded.updated_at`
	updateAsked = `UPDATE turn_progress SET state = 'running', updated_at = ?2 WHERE turn_id = ?1 AND state = 'requires_action'
		AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.turn_id = ?1 AND a.state = 'open')`
)
