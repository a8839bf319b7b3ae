package store

// The statements on the recent lines of a chat.
const (
	// Spoken is the condition of the index messages_thread, and asked of messages_chat alone: no votes, reactions,
	// edits, joins. Any number of those leaves the newest rows of a chat as they are.
	Spoken = `verb IN ('', 'message', 'mention', 'reply') AND kind IN ('message', 'file', 'poll')`

	inChange = `(SELECT c.id FROM messages c INDEXED BY messages_target WHERE c.chat_jid = m.chat_jid AND c.target_id = m.platform_id
		AND c.id <= ?2 AND c.direction = 'in' AND c.verb IN ('edit', 'delete') AND ifnull(c.reason, '') NOT IN ('builtin_drop', 'no_access')
		ORDER BY c.id DESC LIMIT 1)`
	outChange = `(SELECT c.id FROM messages c INDEXED BY messages_derived WHERE c.derived_from = m.id
		AND c.id <= ?2 AND c.direction = 'out' AND c.kind IN ('edit', 'delete') AND ifnull(c.out_state, '') NOT IN ('failed', 'cancelled')
		ORDER BY c.id DESC LIMIT 1)`
	LastChange = `CASE m.direction WHEN 'in' THEN ` + inChange + ` ELSE ` + outChange + ` END`

	queryChange = `SELECT e.verb = 'delete' OR e.kind = 'delete', CASE WHEN octet_length(e.content) <= 1048576 THEN e.content
		ELSE substr(e.content, 1, 262144) END FROM messages m JOIN messages e ON e.id = ` + LastChange + ` WHERE m.id = ?1`
)
