package store

// The statements on the tool calls of agents.
const (
	queryToolCalls = `SELECT tool, result, created_at FROM tool_calls WHERE turn_id = ? ORDER BY created_at`

	// Of attachments that are stored. Other daemons may have written JSON of another shape.
	queryChatFileBytes = `SELECT ifnull(sum(CASE WHEN a.type = 'object' AND json_extract(a.value, '$.path') <> '' AND CAST(json_extract(a.value, '$.size') AS INTEGER) > 0
		THEN CAST(json_extract(a.value, '$.size') AS INTEGER) END), 0) FROM messages m INDEXED BY messages_files CROSS JOIN json_each(m.attachments) a ON TRUE
		WHERE m.attachments IS NOT NULL AND m.chat_jid = ? AND m.received_at > ?`
)
