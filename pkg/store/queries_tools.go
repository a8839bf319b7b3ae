package store

// The statements on the tool calls of agents.
const (
	queryToolCall      = `SELECT result FROM tool_calls WHERE turn_id = ? AND call = ?`
	queryToolCalls     = `SELECT tool, result, created_at FROM tool_calls WHERE turn_id = ? ORDER BY created_at`
	queryToolCallCount = `SELECT count(*), ifnull(sum(CAST(json_extract(result, '$.stored_bytes') AS INTEGER)), 0) FROM tool_calls WHERE turn_id = ?`
	queryGroupCalls    = `SELECT count(*) FROM tool_calls WHERE tool = ?2 AND created_at > ?3
		AND turn_id IN (SELECT id FROM turns INDEXED BY turns_folder WHERE folder = ?1 AND started_at IS NOT NULL ORDER BY id DESC LIMIT 1000)`
	insertToolCall = `INSERT INTO tool_calls (turn_id, call, tool, result, created_at) VALUES (?,?,?,?,?)`
	// Of attachments that are stored. Other daemons may have written JSON of another shape.
	queryChatFileBytes = `SELECT ifnull(sum(CASE WHEN a.type = 'object' AND json_extract(a.value, '$.path') <> '' AND CAST(json_extract(a.value, '$.size') AS INTEGER) > 0
		THEN CAST(json_extract(a.value, '$.size') AS INTEGER) END), 0) FROM messages m INDEXED BY messages_files CROSS JOIN json_each(m.attachments) a ON TRUE
		WHERE m.attachments IS NOT NULL AND m.chat_jid = ? AND m.received_at > ?`
	// Calls of three tools in the turns of one root, itself included.
	queryCallsOfRoot = `SELECT count(*) FROM tool_calls WHERE tool IN (?2, ?3, ?4)
		AND turn_id IN (SELECT id FROM turns INDEXED BY turns_root WHERE root_turn_id = ?1 UNION ALL SELECT ?1)`

	queryThreadOfTopic = `SELECT thread_id FROM topic_threads WHERE chat_jid = ? AND topic = ? ORDER BY thread_id LIMIT 1`
	// A thread that the platform has described, or in which a message was written.
	queryHasThread = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ?1 AND thread_id = ?2)
		OR EXISTS (SELECT 1 FROM messages INDEXED BY messages_thread WHERE thread_id <> '' AND ` + spoken + ` AND chat_jid = ?1 AND thread_id = ?2)`

	// foundRows is the condition of what users and bots wrote, as of row ?2, and was not deleted. What senders wrote
	// whom a group ignores or does not admit is left out. e is the last edit or deletion of the row.
	foundRows = `(m.content <> '' OR m.attachments IS NOT NULL)
		AND (m.out_state IS NULL OR m.out_state NOT IN ('failed', 'cancelled')) AND (m.disposition IS NULL OR m.disposition NOT IN ('prefix', 'onboarding'))
		AND ifnull(m.reason, '') NOT IN ('builtin_drop', 'no_access', 'pin_denied', 'duplicate', 'bad_row', 'deleted')
		AND (e.id IS NULL OR e.verb <> 'delete' AND e.kind <> 'delete')`
	spokenHere     = `m.verb IN ('', 'message', 'mention', 'reply') AND m.kind IN ('message', 'file', 'poll')`
	withChangeHere = ` LEFT JOIN messages e ON e.id = ` + lastChange
	withChange     = ` JOIN messages m ON m.id = o.id` + withChangeHere
	// foundText is what is searched: a message as its last edit left it, a poll's question and options.
	foundText = `CASE WHEN m.kind = 'poll' AND json_valid(m.content) THEN json_extract(m.content, '$.question')
		|| ' ' || (SELECT group_concat(value, ' ') FROM json_each(json_extract(m.content, '$.options'))) ELSE ifnull(e.content, m.content) END`

	// The next rows to search, each with the bytes that this reads.
	querySearchChatPage = `SELECT id, octet_length(content) FROM messages INDEXED BY messages_chat WHERE ` + spoken +
		` AND chat_jid = ?1 AND id < ?2
		ORDER BY id DESC LIMIT ?3+0`
	querySearchRoutedPage = `SELECT decision_seq, octet_length(content) FROM messages INDEXED BY messages_routed
		WHERE routed_to = ?1 AND decision_seq < ?2 ORDER BY decision_seq DESC LIMIT ?3+0`
	querySearchChat = `SELECT ` + foundColumns + ` FROM messages m INDEXED BY messages_chat` + withChangeHere + `
		WHERE ` + spokenHere + ` AND m.chat_jid = ?1 AND m.id >= ?3 AND m.id < ?4 AND ` + foundRows + ` AND ` + foundText + ` LIKE ?5 ESCAPE '\'
		ORDER BY m.id DESC LIMIT ?6+0`
	querySearchRouted = `SELECT ` + foundColumns + ` FROM messages m INDEXED BY messages_routed` + withChangeHere + `
		WHERE m.routed_to = ?1 AND m.decision_seq >= ?3 AND m.decision_seq < ?4 AND m.chat_jid <> ?5 AND ` + spokenHere + ` AND ` + foundRows + `
		AND ` + foundText + ` LIKE ?6 ESCAPE '\' AND NOT (?7 AND ` + directMessages + `) ORDER BY m.decision_seq DESC LIMIT ?8+0`
	// Of the 1,000 rows of the chat before and after. A thread begins with the row that it was opened from.
	queryBeforeMessage = `SELECT ` + foundColumns + ` FROM (SELECT id FROM messages INDEXED BY messages_chat WHERE ` +
		spoken + ` AND chat_jid = ?1 AND id <= ?3
		ORDER BY id DESC LIMIT 1000) o` + withChange + ` WHERE (m.thread_id = ?4 OR m.platform_id = ?4) AND ` + foundRows + ` ORDER BY o.id DESC LIMIT ?5+0`
	queryAfterMessage = `SELECT ` + foundColumns + ` FROM (SELECT id FROM messages INDEXED BY messages_chat WHERE ` +
		spoken + ` AND chat_jid = ?1 AND id > ?3
		ORDER BY id LIMIT 1000) o` + withChange + ` WHERE m.thread_id = ?4 AND ` + foundRows + ` ORDER BY o.id LIMIT ?5+0`
)
