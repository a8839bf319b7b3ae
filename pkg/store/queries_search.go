package store

// Statements of the full-text index and of lists of messages.
const (
	QuerySearchState = `SELECT indexed FROM search_state`
	// The next rows to index, with the bytes that are read for each.
	querySearchNext    = `SELECT id, min(octet_length(content), 65536) FROM messages WHERE id > ? ORDER BY id LIMIT ?+0`
	updateSearchState  = `UPDATE search_state SET indexed = ?`
	insertSearchRows   = `INSERT INTO message_search (docid, content) SELECT id, substr(content, 1, 16384) FROM messages WHERE id > ? AND id <= ? AND content <> ''`
	QuerySearchDeleted = `SELECT ifnull(max(id), 0), count(*) FROM (SELECT id FROM search_deleted ORDER BY id LIMIT ?+0) d`
	deleteSearchRows   = `DELETE FROM message_search WHERE docid IN (SELECT id FROM search_deleted WHERE id <= ?)`
	deleteSearchTexts  = `DELETE FROM search_deleted WHERE id <= ?`

	QuerySearchHits = `SELECT docid, docid FROM message_search WHERE message_search MATCH ?1 AND docid < ?2 AND docid >= ?3 ORDER BY docid DESC LIMIT ?4+0`

	// The rows of ?1, a JSON list of ids, that the other filters of a list leave.
	listFilter = `(?3 = '' OR m.chat_jid = ?3) AND (?4 = '' OR m.routed_to = ?4) AND (?5 = '' OR m.sender = ?5) AND (?6 = '' OR m.direction = ?6)
		AND (?7 = '' OR m.disposition = ?7 OR ?7 = 'undecided' AND m.direction = 'in' AND m.disposition IS NULL) AND (?8 = '' OR m.reason = ?8)
		AND (?9 = '' OR m.out_state = ?9 OR ?9 = 'waiting' AND m.out_state IN ('queued', 'sending'))
		AND m.received_at >= ?10 AND m.received_at < ?11
		AND (?13 = '' OR EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state = 'failed' AND d.error_class = ?13)) LIMIT ?12+0`
	listedColumns = `SELECT j.value, ` + FoundColumns
	QueryListed   = listedColumns +
		` FROM json_each(?1) j CROSS JOIN messages m ON m.id = CAST(j.value AS INTEGER) WHERE ?2+0 <> 0 AND ` +
		listFilter
	foundAsChanged = `SELECT h.id, ` + beforeContent +
		`substr(h.content, 1, 8192), CASE WHEN octet_length(m.attachments) <= 65536 THEN m.attachments END` +
		afterContent
	// Of what a search found, the messages as their last edits left them: a hit that is an edit leads to its message,
	// and what an edit has replaced, or a deletion, is not found.
	QueryListedFound = foundAsChanged +
		` FROM json_each(?1) j CROSS JOIN messages h ON h.id = CAST(j.value AS INTEGER) CROSS JOIN messages m ON m.id = ifnull(CASE
		WHEN h.direction = 'in' AND h.verb = 'edit' THEN (SELECT o.id FROM messages o WHERE o.chat_jid = h.chat_jid AND o.platform_id = h.target_id)
		WHEN h.direction = 'out' AND h.kind = 'edit' THEN h.derived_from END, h.id)
		WHERE ifnull(` + LastChange + `, m.id) = h.id AND ` + listFilter

	// The copy of a row that was sent, or decided, in its place.
	queryCopyOf = `SELECT ifnull(max(n.id), 0) FROM messages n INDEXED BY messages_derived JOIN messages m ON m.id = n.derived_from
		WHERE n.derived_from = ? AND n.direction = m.direction AND n.kind = m.kind
		AND CASE n.direction WHEN 'in' THEN n.source = 'replay' ELSE n.source <> 'notice' END`
)
