package store

// Statements of the full-text index and of lists of messages.
const (
	querySearchState = `SELECT indexed FROM search_state`
	// The next rows to index, with the bytes that are read for each.
	querySearchNext    = `SELECT id, min(octet_length(content), 65536) FROM messages WHERE id > ? ORDER BY id LIMIT ?+0`
	updateSearchState  = `UPDATE search_state SET indexed = ?`
	insertSearchRows   = `INSERT INTO message_search (docid, content) SELECT id, substr(content, 1, 16384) FROM messages WHERE id > ? AND id <= ? AND content <> ''`
	querySearchDeleted = `SELECT ifnull(max(id), 0), count(*) FROM (SELECT id FROM search_deleted ORDER BY id LIMIT ?+0) d`
	deleteSearchRows   = `DELETE FROM message_search WHERE docid IN (SELECT id FROM search_deleted WHERE id <= ?)`
	deleteSearchTexts  = `DELETE FROM search_deleted WHERE id <= ?`
	querySearchWaiting = `SELECT count(*), ifnull(min(received_at), 0) FROM (SELECT received_at FROM messages WHERE id > ?1 ORDER BY id LIMIT ?2+0) n`

	querySearchHits = `SELECT docid, docid FROM message_search WHERE message_search MATCH ?1 AND docid < ?2 AND docid >= ?3 ORDER BY docid DESC LIMIT ?4+0`

	// Where a list looks for rows: ids and positions, the newest first. ?2 is the position after which it continues, ?3
	// an id.
	queryListAll    = `SELECT id, id FROM messages WHERE ?1 = '' AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	queryListChat   = `SELECT id, id FROM messages INDEXED BY messages_chat WHERE chat_jid = ?1 AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	queryListSender = `SELECT id, id FROM messages INDEXED BY messages_sender WHERE sender <> '' AND direction = 'in' AND sender = ?1 AND id < ?2 AND id >= ?3
		ORDER BY id DESC LIMIT ?4+0`
	queryListFolder = `SELECT id, decision_seq FROM messages INDEXED BY messages_routed WHERE routed_to = ?1 AND decision_seq < ?2 AND id >= ?3
		ORDER BY decision_seq DESC LIMIT ?4+0`
	queryListDropped = `SELECT id, id FROM messages INDEXED BY messages_dropped WHERE disposition = 'dropped' AND reason = ?1 AND id < ?2 AND id >= ?3
		ORDER BY id DESC LIMIT ?4+0`
	queryListUndelivered = `SELECT id, id FROM messages INDEXED BY messages_undelivered
		WHERE out_state IN ('failed', 'ambiguous', 'cancelled') AND out_state = ?1 AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	// All of three partial indexes: of what waits.
	queryListUnsent = `SELECT id, id FROM messages INDEXED BY messages_outbox WHERE out_state IN ('queued', 'sending') AND ?1 = '' AND id < ?2 AND id >= ?3
		ORDER BY id DESC LIMIT ?4+0`
	queryListUndecided = `SELECT id, id FROM messages INDEXED BY messages_undecided WHERE direction = 'in' AND disposition IS NULL AND ?1 = ''
		AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	queryListParked = `SELECT id, id FROM messages INDEXED BY messages_parked WHERE disposition = 'onboarding' AND ?1 = ''
		AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	// The rows with a failed part of a class.
	queryListFailed = `SELECT DISTINCT message_id, message_id FROM deliveries INDEXED BY deliveries_failed WHERE state = 'failed' AND error_class = ?1
		AND message_id < ?2 AND message_id >= ?3 ORDER BY message_id DESC LIMIT ?4+0`

	// The rows of ?1, a JSON list of ids, that the other filters of a list leave.
	listFilter = `(?3 = '' OR m.chat_jid = ?3) AND (?4 = '' OR m.routed_to = ?4) AND (?5 = '' OR m.sender = ?5) AND (?6 = '' OR m.direction = ?6)
		AND (?7 = '' OR m.disposition = ?7 OR ?7 = 'undecided' AND m.direction = 'in' AND m.disposition IS NULL) AND (?8 = '' OR m.reason = ?8)
		AND (?9 = '' OR m.out_state = ?9 OR ?9 = 'waiting' AND m.out_state IN ('queued', 'sending'))
		AND m.received_at >= ?10 AND m.received_at < ?11
		AND (?13 = '' OR EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state = 'failed' AND d.error_class = ?13)) LIMIT ?12+0`
	listedColumns = `SELECT j.value, ` + foundColumns
	queryListed   = listedColumns +
		` FROM json_each(?1) j CROSS JOIN messages m ON m.id = CAST(j.value AS INTEGER) WHERE ?2+0 <> 0 AND ` +
		listFilter
	foundAsChanged = `SELECT h.id, ` + beforeContent +
		`substr(h.content, 1, 8192), CASE WHEN octet_length(m.attachments) <= 65536 THEN m.attachments END` +
		afterContent
	// Of what a search found, the messages as their last edits left them: a hit that is an edit leads to its message,
	// and what an edit has replaced, or a deletion, is not found.
	queryListedFound = foundAsChanged +
		` FROM json_each(?1) j CROSS JOIN messages h ON h.id = CAST(j.value AS INTEGER) CROSS JOIN messages m ON m.id = ifnull(CASE
		WHEN h.direction = 'in' AND h.verb = 'edit' THEN (SELECT o.id FROM messages o WHERE o.chat_jid = h.chat_jid AND o.platform_id = h.target_id)
		WHEN h.direction = 'out' AND h.kind = 'edit' THEN h.derived_from END, h.id)
		WHERE ifnull(` + lastChange + `, m.id) = h.id AND ` + listFilter

	// Of the newest rows only: ?3 bounds them.
	queryMinutes = `SELECT (received_at - ?2) / 60000, count(*) FILTER (WHERE direction = 'in'), count(*) FILTER (WHERE direction = 'out') FROM
		(SELECT received_at, direction FROM messages WHERE id >= ?1 ORDER BY id DESC LIMIT ?3+0) n WHERE received_at >= ?2 GROUP BY 1`
	queryIDAfter = `SELECT id, received_at FROM messages WHERE id >= ? ORDER BY id LIMIT 1`

	queryDroppedCount   = `SELECT count(*) FROM (SELECT 1 FROM messages INDEXED BY messages_dropped WHERE disposition = 'dropped' AND reason = ? LIMIT ?+0) n`
	queryDroppedReasons = `WITH RECURSIVE reasons(reason) AS (
		SELECT min(reason) FROM messages INDEXED BY messages_dropped WHERE disposition = 'dropped'
		UNION ALL SELECT (SELECT min(reason) FROM messages INDEXED BY messages_dropped WHERE disposition = 'dropped' AND reason > reasons.reason)
		FROM reasons WHERE reasons.reason IS NOT NULL) SELECT reason FROM reasons WHERE reason IS NOT NULL`
	queryUndeliveredCount = `SELECT count(*) FROM (SELECT 1 FROM messages INDEXED BY messages_undelivered
		WHERE out_state IN ('failed', 'ambiguous', 'cancelled') AND out_state = ? LIMIT ?+0) n`
	queryFailedCount = `SELECT count(*) FROM (SELECT DISTINCT message_id FROM deliveries INDEXED BY deliveries_failed WHERE state = 'failed' AND error_class = ? LIMIT ?+0) n`
	queryParkedCount = `SELECT count(*) FROM (SELECT 1 FROM messages INDEXED BY messages_parked WHERE disposition = 'onboarding' LIMIT ?+0) n`

	// The copy of a row that was sent, or decided, in its place.
	queryCopyOf = `SELECT ifnull(max(n.id), 0) FROM messages n INDEXED BY messages_derived JOIN messages m ON m.id = n.derived_from
		WHERE n.derived_from = ? AND n.direction = m.direction AND n.kind = m.kind
		AND CASE n.direction WHEN 'in' THEN n.source = 'replay' ELSE n.source <> 'notice' END`
)
