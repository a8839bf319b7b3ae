package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	reminderColumns = `SELECT r.id, r.folder, r.chat_jid, r.thread_id, r.topic, r.kind, r.body, ifnull(r.due_at, 0), ifnull(r.cron, ''), r.time_zone,
		r.missed, r.state, ifnull(r.next_slot, 0), r.created_by, r.updated_by, r.error, r.created_at, r.updated_at,
		ifnull(r.root_turn_id, 0), r.depth FROM reminders r`
	queryFolderReminders = reminderColumns +
		` INDEXED BY reminders_folder WHERE r.folder = ? AND r.state = ? AND r.id > ? ORDER BY r.id LIMIT ?+0`
	queryChatReminders = reminderColumns +
		` INDEXED BY reminders_chat WHERE r.chat_jid = ? AND r.state = ? AND r.id > ? ORDER BY r.id LIMIT ?+0`
	queryActiveReminders = reminderColumns +
		` INDEXED BY reminders_active WHERE r.state = 'active' AND r.id > ? ORDER BY r.id LIMIT ?+0`
	queryDueReminders = reminderColumns + ` INDEXED BY reminders_due WHERE r.state = 'active' AND r.next_slot <= ?
		ORDER BY r.next_slot, r.id LIMIT ?+0`
)

func scanReminder(scan store.Scan) (*msg.Reminder, error) {
	var r msg.Reminder
	err := scan(&r.ID, &r.Folder, &r.ChatJID, &r.ThreadID, &r.Topic, &r.Kind, &r.Body, &r.DueAt, &r.Cron, &r.TimeZone,
		&r.Missed, &r.State, &r.NextSlot, &r.CreatedBy, &r.UpdatedBy, &r.Error, &r.CreatedAt, &r.UpdatedAt,
		&r.RootTurnID, &r.Depth)
	return &r, err
}

// Reminder returns a reminder by id, nil if there is none.
func Reminder(ctx context.Context, r store.Reader, id int64) (*msg.Reminder, error) {
	return store.First(store.All(ctx, r, scanReminder, reminderColumns+` WHERE r.id = ?`, id))
}

// ReminderList is which reminders are listed: those of a group or those of a chat in a state; else those that are
// active.
type ReminderList struct {
	Folder  string
	ChatJID string
	State   msg.ReminderState // of a group's or a chat's
	DueBy   int64             // only active ones due by then, in unix ms, those due longest first; 0 for all
	After   int64             // only those with a greater id, not together with DueBy
	Limit   int
}

// Reminders lists reminders, by id.
func Reminders(ctx context.Context, r store.Reader, l ReminderList) ([]*msg.Reminder, error) {
	query, args := queryActiveReminders, []any{l.After}
	switch {
	case l.Folder != "":
		query, args = queryFolderReminders, []any{l.Folder, l.State, l.After}
	case l.ChatJID != "":
		query, args = queryChatReminders, []any{l.ChatJID, l.State, l.After}
	case l.DueBy != 0:
		query, args = queryDueReminders, []any{l.DueBy}
	}
	return store.All(ctx, r, scanReminder, query, append(args, l.Limit)...)
}

// LastSlot returns the last slot for which a reminder fired, in unix ms, and the row that it made; 0 for
// none, or one that was deleted since.
func LastSlot(ctx context.Context, r store.Reader, reminder int64) (slot, message int64, err error) {
	_, err = r.Get(ctx, []any{&slot, &message}, `SELECT slot, ifnull(message_id, 0) FROM reminder_slots WHERE reminder_id = ? ORDER BY slot DESC LIMIT 1`,
		reminder)
	return slot, message, err
}

// ReminderOf returns the reminder that made a row, and the slot, in unix ms; nil if none did.
func ReminderOf(ctx context.Context, r store.Reader, message int64) (made *msg.Reminder, slot int64, err error) {
	var id int64
	found, err := r.Get(ctx, []any{&id, &slot}, `SELECT reminder_id, slot FROM reminder_slots WHERE message_id = ?`,
		message)
	if err != nil || !found {
		return nil, 0, err
	}
	made, err = Reminder(ctx, r, id)
	return made, slot, err
}
