package store

// Statements of the dashboard's pages of routes and of changes.
const (
	auditColumns  = `SELECT id, at, who, what, detail FROM audit`
	queryAudit    = auditColumns + ` WHERE id < ? ORDER BY id DESC LIMIT ?+0`
	queryAuditWho = auditColumns +
		` INDEXED BY audit_who WHERE who = ?1 AND (?2 = '' OR what = ?2) AND id < ?3 ORDER BY id DESC LIMIT ?4+0`
	queryAuditWhat   = auditColumns + ` INDEXED BY audit_what WHERE what = ? AND id < ? ORDER BY id DESC LIMIT ?+0`
	queryOldestAudit = auditColumns + ` ORDER BY id LIMIT 1`
	// Ids are handed out without gaps.
	deleteOldAudit = `DELETE FROM audit WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT ?3+0)
		AND (at < ?1 OR id <= (SELECT max(id) FROM audit) - ?2)`
	// Each kind once: from one of them the index leads to the next.
	queryAuditWhats = `WITH RECURSIVE w (what) AS (
		SELECT * FROM (SELECT what FROM audit INDEXED BY audit_what ORDER BY what LIMIT 1) f
		UNION ALL SELECT (SELECT a.what FROM audit a INDEXED BY audit_what WHERE a.what > w.what ORDER BY a.what LIMIT 1) FROM w WHERE w.what IS NOT NULL)
		SELECT what FROM w WHERE what IS NOT NULL LIMIT ?+0`

	queryNewestInbound = `SELECT m.id, m.chat_jid, ifnull(c.kind, ''), ifnull(c.title, ''), ifnull(c.sticky_group, ''), m.topic, m.thread_id, m.sender,
		m.sender_name, m.verb, ifnull(m.platform_id, ''), m.received_at, m.kind IN ('edit', 'delete'),
		m.forwarded_from IS NOT NULL AND ifnull(json_extract(m.forwarded_from, '$.kind'), '') <> 'inject', ifnull(m.reason, ''), ifnull(m.routed_to, ''),
		substr(m.content, 1, 300)
		FROM messages m LEFT JOIN chats c ON c.jid = m.chat_jid
		WHERE m.direction = 'in' AND m.id > (SELECT max(id) FROM messages) - ?2 ORDER BY m.id DESC LIMIT ?1+0`

	queryDecidedInbound = `SELECT ` + messageColumns +
		` FROM messages m WHERE m.direction = 'in' AND m.disposition IS NOT NULL AND m.decided_at >= ?1
		AND m.id > (SELECT max(id) FROM messages) - ?3 ORDER BY m.id DESC LIMIT ?2+0`

	// There are about as many chats as routes, and far fewer than messages.
	queryNewestChats = `SELECT jid, kind, title FROM chats ORDER BY last_seen_at DESC, jid DESC LIMIT ?+0`
)
