package store

// The statements on the tool calls of agents.
const (
	queryToolCall      = `SELECT result FROM tool_calls WHERE turn_id = ? AND call = ?`
	queryToolCallCount = `SELECT count(*) FROM tool_calls WHERE turn_id = ?`
	insertToolCall     = `INSERT INTO tool_calls (turn_id, call, tool, result, created_at) VALUES (?,?,?,?,?)`
	querySentFileBytes = `SELECT ifnull(sum(json_extract(attachments, '$[0].size')), 0) FROM messages INDEXED BY messages_files
		WHERE kind = 'file' AND chat_jid = ? AND received_at > ?`

	queryThreadOfTopic = `SELECT thread_id FROM topic_threads WHERE chat_jid = ? AND topic = ? ORDER BY thread_id LIMIT 1`
	// A thread that the platform has described, or of one of the chat's newest 1,000 rows.
	queryHasThread = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ?1 AND thread_id = ?2)
		OR EXISTS (SELECT 1 FROM (SELECT thread_id FROM messages INDEXED BY messages_chat WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 1000)
			WHERE thread_id = ?2)`
)
