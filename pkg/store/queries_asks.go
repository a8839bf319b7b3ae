package store

// Statements about questions of agents.
const (
	AskColumns = `a.id, a.turn_id, a.ask_id, ifnull(a.message_id, 0), a.question, a.options, a.payload_hash, a.who, a.state, ifnull(a.option, ''),
		ifnull(a.answered_by, ''), a.created_at, a.expires_at, ifnull(a.ended_at, 0)`
	queryAsk          = `SELECT ` + AskColumns + ` FROM asks a WHERE a.id = ?`
	queryAskByMessage = `SELECT ` + AskColumns + ` FROM asks a INDEXED BY asks_message WHERE a.message_id = ?`
	QueryTurnAsks     = `SELECT ` + AskColumns + ` FROM asks a WHERE a.turn_id = ? ORDER BY a.id`
	queryChatAsks     = `SELECT ` + AskColumns +
		` FROM asks a INDEXED BY asks_open CROSS JOIN messages m ON m.id = a.message_id
		WHERE a.state = 'open' AND m.chat_jid = ? AND m.thread_id = ? ORDER BY a.id LIMIT 20`

	// Those that a text without a target may have answered at a time: they stand in the thread above it.
	queryAsksOpenAt = `SELECT ` + AskColumns + ` FROM (SELECT m.id, m.thread_id FROM messages m INDEXED BY messages_chat
			WHERE m.chat_jid = ?1 AND m.id < ?3 ORDER BY m.id DESC LIMIT 1000) m CROSS JOIN asks a INDEXED BY asks_message ON a.message_id = m.id
		WHERE m.thread_id = ?2 AND a.created_at <= ?4 AND ifnull(a.ended_at, ?4) >= ?4 ORDER BY a.id LIMIT 20`

	queryPresses = `SELECT ` + MessageColumns + ` FROM messages m INDEXED BY messages_target
		WHERE m.chat_jid = ? AND m.target_id = ? AND m.direction = 'in' AND m.verb = 'answer' ORDER BY m.id LIMIT 20`
)
