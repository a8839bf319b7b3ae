package store

// The statements on the tool calls of agents.
const (
	queryToolCall      = `SELECT result FROM tool_calls WHERE turn_id = ? AND call = ?`
	queryToolCallCount = `SELECT count(*) FROM tool_calls WHERE turn_id = ?`
	insertToolCall     = `INSERT INTO tool_calls (turn_id, call, tool, result, created_at) VALUES (?,?,?,?,?)`
	// Of attachments that are stored. Other daemons may have written JSON of another shape.
	queryChatFileBytes = `SELECT CAST(total(CASE WHEN a.type = 'object' AND json_extract(a.value, '$.path') <> '' AND json_extract(a.value, '$.size') > 0
		THEN json_extract(a.value, '$.size') END) AS INTEGER) FROM messages m INDEXED BY messages_files JOIN json_each(m.attachments) a
		WHERE m.attachments IS NOT NULL AND m.chat_jid = ? AND m.received_at > ?`
	// Calls of three tools in the turns of one root, itself included.
	queryCallsOfRoot = `SELECT count(*) FROM tool_calls WHERE tool IN (?2, ?3, ?4)
		AND turn_id IN (SELECT id FROM turns INDEXED BY turns_root WHERE root_turn_id = ?1 UNION ALL SELECT ?1)`

	queryThreadOfTopic = `SELECT thread_id FROM topic_threads WHERE chat_jid = ? AND topic = ? ORDER BY thread_id LIMIT 1`
	// A thread that the platform has described, or of one of the chat's newest 1,000 rows.
	queryHasThread = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ?1 AND thread_id = ?2)
		OR EXISTS (SELECT 1 FROM (SELECT thread_id FROM messages INDEXED BY messages_chat WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 1000)
			WHERE thread_id = ?2)`

	// spokenRows is the condition of what users and bots wrote, and was not withdrawn. What senders wrote whom a group
	// ignores or does not admit is left out.
	spokenRows = `m.verb IN ('message', 'mention', 'reply') AND m.kind IN ('message', 'file', 'poll') AND m.content <> ''
		AND (m.out_state IS NULL OR m.out_state NOT IN ('failed', 'cancelled')) AND (m.disposition IS NULL OR m.disposition NOT IN ('prefix', 'onboarding'))
		AND ifnull(m.reason, '') NOT IN ('builtin_drop', 'no_access', 'pin_denied', 'duplicate', 'bad_row', 'deleted')
		AND NOT EXISTS (SELECT 1 FROM messages d INDEXED BY messages_target WHERE d.chat_jid = m.chat_jid AND d.target_id = m.platform_id
			AND d.direction = 'in' AND d.verb = 'delete' AND ifnull(d.reason, '') NOT IN ('builtin_drop', 'no_access'))`

	// The next rows to search, each with the bytes that this reads.
	querySearchChatPage   = `SELECT id, octet_length(content) FROM messages INDEXED BY messages_chat WHERE chat_jid = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3+0`
	querySearchRoutedPage = `SELECT decision_seq, octet_length(content) FROM messages INDEXED BY messages_routed
		WHERE routed_to = ?1 AND decision_seq < ?2 ORDER BY decision_seq DESC LIMIT ?3+0`
	querySearchChat = `SELECT ` + foundColumns + ` FROM messages m INDEXED BY messages_chat WHERE m.chat_jid = ?1 AND m.id >= ?2 AND m.id < ?3
		AND ` + spokenRows + ` AND m.content LIKE ?4 ESCAPE '\' ORDER BY m.id DESC LIMIT ?5+0`
	querySearchRouted = `SELECT ` + foundColumns + ` FROM messages m INDEXED BY messages_routed
		WHERE m.routed_to = ?1 AND m.decision_seq >= ?2 AND m.decision_seq < ?3 AND m.id < ?4 AND m.chat_jid <> ?5 AND ` + spokenRows + `
		AND m.content LIKE ?6 ESCAPE '\' AND NOT (?7 AND EXISTS (SELECT 1 FROM chats c WHERE c.jid = m.chat_jid AND c.kind = 'dm'))
		ORDER BY m.decision_seq DESC LIMIT ?8+0`
	// Of the 1,000 rows of the chat before and after.
	queryBeforeMessage = `SELECT ` + foundColumns + ` FROM (SELECT id FROM messages INDEXED BY messages_chat WHERE chat_jid = ?1 AND id <= ?2
		ORDER BY id DESC LIMIT 1000) c JOIN messages m ON m.id = c.id WHERE m.thread_id = ?3 AND ` + spokenRows + ` ORDER BY c.id DESC LIMIT ?4+0`
	queryAfterMessage = `SELECT ` + foundColumns + ` FROM (SELECT id FROM messages INDEXED BY messages_chat WHERE chat_jid = ?1 AND id > ?2
		ORDER BY id LIMIT 1000) c JOIN messages m ON m.id = c.id WHERE m.thread_id = ?3 AND ` + spokenRows + ` ORDER BY c.id LIMIT ?4+0`
)
