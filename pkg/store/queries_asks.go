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
)
