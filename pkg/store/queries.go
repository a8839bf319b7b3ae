package store

// The statements that run for every message, turn or frame, and all others on
// the tables that grow with these. They are named so that a test can check the
// index that each uses.
//
// If a parameter alone is a LIMIT, or is compared with a column in a partial
// index's condition, SQLite plans the statement again at every call. Hence ?+0,
// a concatenation with an empty text, or a literal.
const (
	queryMessage      = `SELECT ` + MessageColumns + ` FROM messages m WHERE m.id = ?`
	queryByPlatformID = `SELECT ` + MessageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.platform_id = ?`
	queryByPart       = `SELECT ` + MessageColumns + ` FROM deliveries d JOIN messages m ON m.id = d.message_id
		WHERE d.platform_id = ? AND m.chat_jid = ? LIMIT 1`
	queryMessageID = `SELECT id FROM messages WHERE chat_jid = ? AND platform_id = ?`
	queryLastID    = `SELECT ifnull(max(id), 0) FROM messages`

	queryTurnMessages = `SELECT ` + MessageColumns +
		` FROM messages m WHERE m.turn_id = ? AND m.direction = 'in' ORDER BY m.id`
	queryTurnReplies = `SELECT ` + MessageColumns +
		` FROM messages m WHERE m.turn_id = ? AND m.direction = 'out' AND m.source <> 'waiting' ORDER BY m.id`

	queryDerivedFrom = `SELECT ` + MessageColumns + ` FROM messages m WHERE m.derived_from = ? ORDER BY m.id`

	insertMessage = `INSERT INTO messages (chat_jid, platform_id, direction, kind, sender, sender_name, is_bot_message,
		verb, content, attachments, topic, thread_id, reply_to_id, target_id, addressed, pending_files, timestamp,
		received_at, source, derived_from, forwarded_from, turn_id, out_state, files_wanted, group_key, quote, on_behalf_of)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (chat_jid, platform_id) WHERE platform_id IS NOT NULL DO NOTHING`
	// A row of a quoted post gives its platform id to the post itself.
	updateEndQuoted = `UPDATE messages SET platform_id = NULL, disposition = 'dropped', reason = 'duplicate'
		WHERE chat_jid = ? AND platform_id = ? AND disposition = 'observed' AND reason = 'quoted'`
	updateEndQuotedOfOwn = `UPDATE messages SET platform_id = NULL, disposition = 'dropped', reason = 'duplicate'
		WHERE chat_jid = (SELECT chat_jid FROM messages WHERE id = ?) AND platform_id = ? AND disposition = 'observed' AND reason = 'quoted'`
	updateDecide = `UPDATE messages SET disposition = ?, reason = ?, routed_to = ?, turn_id = ?, topic = ?, thread_id = ?,
		error = ?, decided_at = ?, decision_seq = ? WHERE id = ? AND disposition IS NULL RETURNING received_at`

	updateOtherFiles = `UPDATE messages SET attachments = ?, pending_files = ?, files_wanted = 0 WHERE id = ? AND disposition IS NULL`

	// See msg.Message.Decorates.
	Decorates = `(m.kind IN ('edit', 'reaction', 'delete') OR m.kind = 'poll' AND m.target_id IS NOT NULL)`

	updateFiles = `UPDATE messages SET attachments = ?, pending_files = 0 WHERE id = ? AND pending_files > 0`

	queryDeliveries = `SELECT message_id, part, state, attempts, not_before, ifnull(platform_id,''), ifnull(error_class,''), ifnull(error,''),
		updated_at FROM deliveries WHERE message_id = ? ORDER BY part`
	updateClaimOutbound  = `UPDATE messages SET out_state = 'sending' WHERE id = ? AND out_state = 'queued'`
	updateSettleOutbound = `UPDATE messages SET out_state = ?1, platform_id = (SELECT ?2 WHERE NOT EXISTS
		(SELECT 1 FROM messages o WHERE o.chat_jid = messages.chat_jid AND o.platform_id = ?2))
		WHERE id = ?3 AND out_state = 'sending'`
	putDelivery = `INSERT INTO deliveries (message_id, part, state, attempts, not_before, platform_id, error_class, error, updated_at)
		VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (message_id, part) DO UPDATE SET state = excluded.state, attempts = excluded.attempts,
		not_before = excluded.not_before, platform_id = excluded.platform_id, error_class = excluded.error_class,
		error = excluded.error, updated_at = excluded.updated_at`

	queryChat = `SELECT jid, kind, title, ifnull(sticky_topic,''), ifnull(sticky_group,''), ifnull(sticky_at,0)
		FROM chats WHERE jid = ?`
	queryThreadTopic = `SELECT topic FROM topic_threads WHERE chat_jid = ? AND thread_id = ?`
	insertChat       = `INSERT INTO chats (jid, platform, kind, last_seen_at) VALUES (?,?,?,?) ON CONFLICT (jid) DO NOTHING`
	queryState       = `SELECT value FROM router_state WHERE key = ?`

	BumpState = `INSERT INTO router_state (key, value) VALUES (?,1)
		ON CONFLICT (key) DO UPDATE SET value = router_state.value + 1 RETURNING value`
)
