package store

// The statements on the recent lines of a chat.
const (
	// spoken is the condition of the index messages_thread, and asked of messages_chat alone: no votes, reactions,
	// edits, joins. Any number of those leaves the newest rows of a chat as they are.
	spoken = `verb IN ('', 'message', 'mention', 'reply') AND kind IN ('message', 'file', 'poll')`
	// What users and bots said, and the bot's own messages, as of row ?2. Not: commands and tokens, their answers,
	// notices, reactions, joins, rows made from others, what was cancelled or failed, and what senders wrote whom a
	// group ignores or does not admit. e is the last edit or deletion of the row.
	said = `((m.direction = 'in' AND m.derived_from IS NULL
		AND ifnull(m.disposition, '') NOT IN ('sticky', 'command')
		AND ifnull(m.reason, '') NOT IN ('builtin_drop', 'no_access', 'pin_denied', 'duplicate', 'bad_row', 'deleted'))
		OR (m.direction = 'out' AND m.source NOT IN ('notice', 'command')
		AND ifnull(m.out_state, '') NOT IN ('failed', 'cancelled')))
		AND (m.content <> '' OR m.attachments IS NOT NULL)
		AND (e.id IS NULL OR e.verb <> 'delete' AND e.kind <> 'delete')`
	inChange = `(SELECT c.id FROM messages c INDEXED BY messages_target WHERE c.chat_jid = m.chat_jid AND c.target_id = m.platform_id
		AND c.id <= ?2 AND c.direction = 'in' AND c.verb IN ('edit', 'delete') AND ifnull(c.reason, '') NOT IN ('builtin_drop', 'no_access')
		ORDER BY c.id DESC LIMIT 1)`
	outChange = `(SELECT c.id FROM messages c INDEXED BY messages_derived WHERE c.derived_from = m.id
		AND c.id <= ?2 AND c.direction = 'out' AND c.kind IN ('edit', 'delete') AND ifnull(c.out_state, '') NOT IN ('failed', 'cancelled')
		ORDER BY c.id DESC LIMIT 1)`
	lastChange = `CASE m.direction WHEN 'in' THEN ` + inChange + ` ELSE ` + outChange + ` END`

	// Of the newest 1000 spoken rows of the chat, thread or topic, the newest 100 that count. A poll is read whole.
	recentColumns = `SELECT m.id, m.turn_id, ifnull(m.platform_id, ''), ifnull(m.reply_to_id, ''), m.thread_id, m.timestamp, m.direction = 'out', ifnull(m.reason, '') = 'quoted', m.kind,
		m.sender, ` + shortName + `, substr(ifnull(e.content, m.content), 1, CASE m.kind WHEN 'poll' THEN 65536 ELSE 2048 END), octet_length(ifnull(e.content, m.content)),
		CASE WHEN octet_length(m.attachments) <= 65536 THEN m.attachments END
		FROM (SELECT id FROM messages `
	recentRows = ` AND id <= ?2 ORDER BY id DESC LIMIT 1000) r JOIN messages m ON m.id = r.id
		LEFT JOIN messages e ON e.id = ` + lastChange + ` WHERE ` + said + ` ORDER BY r.id DESC LIMIT 100`
	queryRecent = recentColumns + `INDEXED BY messages_chat WHERE ` + spoken + ` AND chat_jid = ?1` + recentRows
	// The newest row of each thread of a chat, and of these the ones since a time.
	queryRecentThreads = `SELECT m.thread_id FROM (
		SELECT max(id) AS newest FROM messages INDEXED BY messages_thread WHERE thread_id <> '' AND ` + spoken + ` AND chat_jid = ?1 GROUP BY thread_id
		) t JOIN messages m ON m.id = t.newest WHERE m.received_at >= ?2 ORDER BY m.id`
	queryRecentThread = recentColumns + `INDEXED BY messages_thread WHERE thread_id <> '' AND ` + spoken +
		` AND chat_jid = ?1 AND thread_id = ?3` + recentRows
	// The row that a thread was opened from, which is none of the thread.
	queryRecentOpening = recentColumns + `WHERE id = ?3 AND ` + spoken + ` AND chat_jid = ?1 AND thread_id <> ?4` +
		recentRows
	queryRecentTopic = recentColumns + `INDEXED BY messages_web WHERE platform = 'web' AND ` + spoken +
		` AND chat_jid = ?1 AND topic = ?3` + recentRows
	queryRecentParts = `SELECT d.platform_id, d.message_id FROM json_each(?) own CROSS JOIN deliveries d ON d.message_id = CAST(own.value AS INTEGER)
		WHERE d.platform_id IS NOT NULL`

	queryChange = `SELECT e.verb = 'delete' OR e.kind = 'delete', CASE WHEN octet_length(e.content) <= 1048576 THEN e.content
		ELSE substr(e.content, 1, 262144) END FROM messages m JOIN messages e ON e.id = ` + lastChange + ` WHERE m.id = ?1`
)
