package store

// The hot queries, named so that a test can hold each to its index.
const (
	queryMessage      = `SELECT ` + messageColumns + ` FROM messages m WHERE m.id = ?`
	queryByPlatformID = `SELECT ` + messageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.platform_id = ?`
	queryByPart       = `SELECT ` + messageColumns + ` FROM deliveries d JOIN messages m ON m.id = d.message_id
		WHERE d.platform_id = ? AND m.chat_jid = ? LIMIT 1`
	queryNewMessages = `SELECT id, chat_jid, direction = 'in' AND disposition IS NULL
		FROM messages WHERE id > ? ORDER BY id LIMIT ?`
	queryUndecidedChats = `SELECT DISTINCT chat_jid FROM messages INDEXED BY messages_undecided
		WHERE direction = 'in' AND disposition IS NULL`
	queryUndecided = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid = ? AND m.id > ? ORDER BY m.id LIMIT ?`
	queryTurnMessages = `SELECT ` + messageColumns + ` FROM messages m WHERE m.turn_id = ? AND m.direction = ? ORDER BY m.id`
	queryDerivedFrom  = `SELECT ` + messageColumns + ` FROM messages m WHERE m.derived_from = ? ORDER BY m.id`
	observedRows      = `(SELECT id, decision_seq, chat_jid FROM messages INDEXED BY messages_routed
		WHERE routed_to = ?1 AND decision_seq > ?2 ORDER BY decision_seq DESC LIMIT 10000) o
		JOIN messages m ON m.id = o.id
		WHERE o.chat_jid <> ?3 AND m.received_at >= ?4 AND m.is_bot_message = 0
		AND (m.content <> '' OR m.attachments IS NOT NULL)
		AND m.disposition IN ('routed', 'observed') AND m.verb NOT IN ('edit', 'delete')
		AND NOT (?5 AND EXISTS (SELECT 1 FROM chats c WHERE c.jid = m.chat_jid AND c.kind = 'dm'))`
	queryObserved       = `SELECT ` + messageColumns + ` FROM ` + observedRows + ` ORDER BY o.decision_seq DESC LIMIT ?6`
	queryObservedCount  = `SELECT count(*) FROM ` + observedRows
	queryLastHome       = `SELECT folder FROM turns WHERE chat_jid = ? ORDER BY id DESC LIMIT 1`
	queryPreviousReason = `SELECT reason FROM messages WHERE chat_jid = ? AND id < ? AND disposition IS NOT NULL
		ORDER BY id DESC LIMIT 1`

	insertMessage = `INSERT INTO messages (chat_jid, platform_id, direction, kind, sender, sender_name, is_bot_message,
		verb, content, attachments, topic, thread_id, reply_to_id, target_id, addressed, pending_files, timestamp,
		received_at, source, derived_from, forwarded_from, turn_id, out_state)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (chat_jid, platform_id) WHERE platform_id IS NOT NULL DO NOTHING`
	updateDecide = `UPDATE messages SET disposition = ?, reason = ?, routed_to = ?, turn_id = ?, topic = ?, thread_id = ?,
		decided_at = ?, decision_seq = ? WHERE id = ? AND disposition IS NULL`
	updateContent   = `UPDATE messages SET content = ?, addressed = ?, verb = ? WHERE id = ? AND disposition IS NULL`
	updateTakeNotes = `UPDATE messages INDEXED BY messages_notes SET turn_id = ?
		WHERE chat_jid = ? AND reason = 'edit_note' AND turn_id IS NULL AND routed_to = ? AND thread_id = ?`
	queryFiredEdit      = `SELECT EXISTS (SELECT 1 FROM messages WHERE chat_jid = ? AND target_id = ? AND disposition = 'routed')`
	updateCancelReplies = `UPDATE messages SET out_state = 'cancelled'
		WHERE turn_id = ? AND direction = 'out' AND out_state = 'queued'`

	queryOpenTurns  = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'offered', 'running') ORDER BY t.id`
	queryOpenOfChat = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'offered', 'running') AND t.chat_jid = ? ORDER BY t.id`
	queryRunTurns   = `SELECT ` + turnColumns + ` FROM turns t INDEXED BY turns_run WHERE t.run_id = ? AND t.state IN ('offered', 'running') ORDER BY t.id`
	queryChatTurns  = `SELECT ` + turnColumns + ` FROM turns t WHERE t.chat_jid = ? ORDER BY t.id DESC LIMIT ?`
	queryShownUpto  = `SELECT ifnull(max(observed_upto), 0) FROM (SELECT observed_upto FROM turns WHERE folder = ? AND topic = ? AND state = 'done' ORDER BY id DESC LIMIT 1)`
	queryUnended    = `SELECT ` + runColumns + ` FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL`
	queryRunIsLive  = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND closed_at IS NULL)`
	querySession    = `SELECT session_id FROM sessions WHERE group_folder = ? AND topic = ?`
	querySystem     = `SELECT id, origin, event, body FROM system_messages WHERE folder = ? AND turn_id IS NULL ORDER BY id`
	querySystemTurn = `SELECT id, origin, event, body FROM system_messages WHERE turn_id = ? ORDER BY id`
	queryOutbox     = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_outbox
		WHERE m.platform = ? AND m.out_state IN ('queued', 'sending') ORDER BY m.chat_jid, m.id LIMIT ?`
)
