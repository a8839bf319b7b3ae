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

	queryLastSlot   = `SELECT slot, ifnull(message_id, 0) FROM reminder_slots WHERE reminder_id = ? ORDER BY slot DESC LIMIT 1`
	queryReminderOf = `SELECT reminder_id, slot FROM reminder_slots WHERE message_id = ?`
)
