package store

// What routd reads for each question.
const (
	// A claim begins with the first row of its turn that claims, and is renewed by the last one: a turn
	// that waits takes in newer rows. The open claims come beside the newest ones: a turn may take longer
	// than many short ones after it.
	ClaimingRow = `r.direction = 'in' AND (r.verb IN ('mention', 'reply') OR r.reason = 'engaged')`
	// The work of another group, or of its own, that a turn began counts for that turn, as long as it answers in the
	// same place: an injected message may run anywhere, and a reminder that it made claims nothing. A message to a
	// fork's own thread from another place counts for that thread, and calls its group there: what users then write in
	// the thread is for the fork.
	RootHere             = `p.id = t.root_turn_id AND p.chat_jid = t.chat_jid AND p.place = t.place AND t.kind <> 'broadcast'`
	queryDeliveryChanges = `SELECT d.seq, d.state, d.updated_at, m.id, m.chat_jid, m.source, ifnull(f.thread_id, ifnull(t.place,'')),
		ifnull(f.folder, ifnull(o.folder,'')),
		CASE WHEN f.topic IS NOT NULL THEN f.ended_at IS NULL
			ELSE ifnull(o.claims_engagement,0) = 1 AND (t.ended_at IS NULL OR m.received_at <= t.ended_at) END,
		ifnull(f.created_at, ifnull((SELECT max(r.received_at) FROM messages r WHERE r.turn_id = o.id AND ` + ClaimingRow + `), ifnull(q.received_at,0)))
		FROM deliveries d INDEXED BY deliveries_seq JOIN messages m ON m.id = d.message_id
		LEFT JOIN turns t ON t.id = m.turn_id LEFT JOIN turns p ON ` + RootHere + `
		LEFT JOIN turns o ON o.id = ifnull(p.id, t.id) AND o.kind <> 'broadcast'
		LEFT JOIN messages q ON q.id = o.trigger_message_id
		LEFT JOIN forks f ON f.chat_jid = m.chat_jid AND f.folder = t.folder AND t.place <> m.thread_id
			AND f.topic = (SELECT topic ` + forkOfThread + `n.chat_jid = m.chat_jid AND n.thread_id = m.thread_id ` + newestFork + `)
		WHERE d.seq > ? ORDER BY d.seq LIMIT ?+0`

	DeliveriesRead = `ifnull((SELECT CAST(value AS INTEGER) FROM cursors WHERE daemon = 'routd' AND key = 'deliveries'), 0)`
	LastDelivery   = `(SELECT value FROM counters WHERE name = 'deliveries')`

	queryEngagement = `SELECT ` + engagementColumns +
		`, ifnull((SELECT sticky_at FROM chats WHERE jid = ?1), 0), ` + DeliveriesRead + `, ` + LastDelivery + `
		FROM (SELECT 1) one LEFT JOIN chat_reply_state ON jid = ?1 AND topic = ?2`
	queryEngagements = `SELECT ` + engagementColumns + ` FROM chat_reply_state WHERE jid = ?
		ORDER BY engaged_until DESC NULLS LAST, topic LIMIT 1000`
	queryRoutingVersion = `SELECT value FROM counters WHERE name = 'routing'`
)
