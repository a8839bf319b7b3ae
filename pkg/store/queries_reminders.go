package store

// Statements about reminders and broadcasts.
const (
	reminderColumns = `SELECT r.id, r.folder, r.chat_jid, r.thread_id, r.topic, r.kind, r.body, ifnull(r.due_at, 0), ifnull(r.cron, ''), r.time_zone,
		r.missed, r.state, ifnull(r.next_slot, 0), r.created_by, r.updated_by, r.error, r.created_at, r.updated_at,
		ifnull(r.root_turn_id, 0), r.depth FROM reminders r`
	queryReminder        = reminderColumns + ` WHERE r.id = ?`
	queryFolderReminders = reminderColumns +
		` INDEXED BY reminders_folder WHERE r.folder = ? AND r.state = ? AND r.id > ? ORDER BY r.id LIMIT ?+0`
	queryChatReminders = reminderColumns +
		` INDEXED BY reminders_chat WHERE r.chat_jid = ? AND r.state = ? AND r.id > ? ORDER BY r.id LIMIT ?+0`
	queryActiveReminders = reminderColumns +
		` INDEXED BY reminders_active WHERE r.state = 'active' AND r.id > ? ORDER BY r.id LIMIT ?+0`
	queryDueReminders = reminderColumns + ` INDEXED BY reminders_due WHERE r.state = 'active' AND r.next_slot <= ?
		ORDER BY r.next_slot, r.id LIMIT ?+0`
	queryNextSlot       = `SELECT next_slot FROM reminders INDEXED BY reminders_due WHERE state = 'active' AND next_slot IS NOT NULL ORDER BY next_slot LIMIT 1`
	queryCountReminders = `SELECT (SELECT count(*) FROM reminders INDEXED BY reminders_folder WHERE folder = ?1 AND state = 'active'),
		(SELECT count(*) FROM reminders INDEXED BY reminders_chat WHERE chat_jid = ?2 AND state = 'active')`
	queryPlannedPrompts = `SELECT next_slot FROM reminders INDEXED BY reminders_chat WHERE chat_jid = ? AND state = 'active' AND kind = 'prompt'
		AND cron IS NULL AND next_slot IS NOT NULL AND id <> ? ORDER BY next_slot`
	queryNotifiedOfLimit = `SELECT EXISTS (SELECT 1 FROM (SELECT source, on_behalf_of, timestamp FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE source = 'notice' AND on_behalf_of = ? AND timestamp > ?)`
	queryCountActive = `SELECT count(*) FROM reminders INDEXED BY reminders_active WHERE state = 'active'`
	queryLastSlot    = `SELECT slot, ifnull(message_id, 0) FROM reminder_slots WHERE reminder_id = ? ORDER BY slot DESC LIMIT 1`
	queryReminderOf  = `SELECT reminder_id, slot FROM reminder_slots WHERE message_id = ?`
	// A slot's row is the text itself, or the prompt of a turn.
	queryRefusedSlots = `SELECT CASE WHEN EXISTS (SELECT 1 FROM messages o WHERE o.turn_id = m.turn_id AND o.direction = 'out' AND o.out_state IN ('sent', 'ambiguous')) THEN ''
		ELSE ifnull((SELECT max(d.error) FROM messages o CROSS JOIN deliveries d ON d.message_id = o.id WHERE (o.id = m.id OR o.turn_id = m.turn_id)
			AND o.out_state = 'failed' AND d.state = 'failed' AND d.error_class = 'permanent'), '') END
		FROM reminder_slots s JOIN messages m ON m.id = s.message_id WHERE s.reminder_id = ? ORDER BY s.slot DESC LIMIT ?+0`

	insertReminder = `INSERT INTO reminders (folder, chat_jid, thread_id, topic, kind, body, due_at, cron, time_zone, missed, state, next_slot,
		created_by, updated_by, created_at, updated_at, root_turn_id, depth) VALUES (?,?,?,?,?,?,?,?,?,?,'active',?,?,?,?,?,?,?)`
	updateReminder = `UPDATE reminders SET topic = ?, kind = ?, body = ?, due_at = ?, cron = ?, time_zone = ?, missed = ?, next_slot = ?,
		updated_by = ?, root_turn_id = ?, depth = ?, updated_at = max(?, updated_at + 1) WHERE id = ? AND state = 'active'`
	updateEndReminder = `UPDATE reminders SET state = ?, next_slot = NULL, error = ?, updated_by = ?, updated_at = max(?, updated_at + 1) WHERE id = ? AND state = 'active'`
	// Only as it was when its slot was computed.
	updateFireReminder = `UPDATE reminders SET state = ?, next_slot = ? WHERE id = ? AND state = 'active' AND next_slot IS NOT DISTINCT FROM ? AND updated_at = ?`
	insertSlot         = `INSERT INTO reminder_slots (reminder_id, slot) VALUES (?,?) ON CONFLICT DO NOTHING`
	updateSlot         = `UPDATE reminder_slots SET message_id = ? WHERE reminder_id = ? AND slot = ?`

	queryBroadcastByKey = `SELECT id, key, text, created_by, chats, message_ids, created_at, ifnull(ended_at, 0) FROM broadcasts WHERE key = ?`
	// For operators who ask about one message: there are few broadcasts.
	queryBroadcastOf = `SELECT id, key, text, created_by, chats, message_ids, created_at, ifnull(ended_at, 0) FROM broadcasts
		WHERE EXISTS (SELECT 1 FROM json_each(message_ids) WHERE CAST(value AS INTEGER) = ?)`
	queryOpenBroadcast = `SELECT id, key, text, created_by, chats, message_ids, created_at, 0 FROM broadcasts INDEXED BY broadcasts_open
		WHERE ended_at IS NULL ORDER BY id LIMIT 1`
	insertBroadcast = `INSERT INTO broadcasts (key, text, created_by, chats, created_at) VALUES (?,?,?,?,?) ON CONFLICT (key) DO NOTHING`
	updateBroadcast = `UPDATE broadcasts SET message_ids = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL`

	queryChatsPage = `SELECT jid, kind, title, ifnull(sticky_topic,''), ifnull(sticky_group,''), ifnull(sticky_at,0)
		FROM chats WHERE jid > ? ORDER BY jid LIMIT ?+0`
)
