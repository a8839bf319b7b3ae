package store

import (
	"context"

	"arizuko/pkg/msg"
)

func scanReminder(scan Scan) (*msg.Reminder, error) {
	var r msg.Reminder
	err := scan(&r.ID, &r.Folder, &r.ChatJID, &r.ThreadID, &r.Topic, &r.Kind, &r.Body, &r.DueAt, &r.Cron, &r.TimeZone,
		&r.Missed, &r.State, &r.NextSlot, &r.CreatedBy, &r.UpdatedBy, &r.Error, &r.CreatedAt, &r.UpdatedAt,
		&r.RootTurnID, &r.Depth)
	return &r, err
}

func (r Reader) reminders(ctx context.Context, query string, args ...any) ([]*msg.Reminder, error) {
	return All(ctx, r, scanReminder, query, args...)
}

// Reminder returns a reminder by id, nil if there is none.
func (r Reader) Reminder(ctx context.Context, id int64) (*msg.Reminder, error) {
	return First(r.reminders(ctx, queryReminder, id))
}

// FolderReminders returns a group's reminders in a state after an id, at most limit, by id.
func (r Reader) FolderReminders(ctx context.Context, folder string, state msg.ReminderState, after int64,
	limit int) ([]*msg.Reminder, error) {
	return r.reminders(ctx, queryFolderReminders, folder, state, after, limit)
}

// ChatReminders returns a chat's reminders in a state after an id, at most limit, by id.
func (r Reader) ChatReminders(ctx context.Context, chatJID string, state msg.ReminderState, after int64,
	limit int) ([]*msg.Reminder, error) {
	return r.reminders(ctx, queryChatReminders, chatJID, state, after, limit)
}

// ActiveReminders returns the active reminders of all groups after an id, at most limit, by id.
func (r Reader) ActiveReminders(ctx context.Context, after int64, limit int) ([]*msg.Reminder, error) {
	return r.reminders(ctx, queryActiveReminders, after, limit)
}

// DueReminders returns the active reminders whose next slot is not after now, in unix ms, at most
// limit, those due longest first.
func (r Reader) DueReminders(ctx context.Context, now int64, limit int) ([]*msg.Reminder, error) {
	return r.reminders(ctx, queryDueReminders, now, limit)
}

// LastSlot returns the last slot for which a reminder fired, in unix ms, and the row that it made; 0 for
// none, or one that was deleted since.
func (r Reader) LastSlot(ctx context.Context, reminder int64) (slot, message int64, err error) {
	_, err = r.Get(ctx, []any{&slot, &message}, queryLastSlot, reminder)
	return slot, message, err
}

// ReminderOf returns the reminder that made a row, and the slot, in unix ms; nil if none did.
func (r Reader) ReminderOf(ctx context.Context, message int64) (made *msg.Reminder, slot int64, err error) {
	var id int64
	found, err := r.Get(ctx, []any{&id, &slot}, queryReminderOf, message)
	if err != nil || !found {
		return nil, 0, err
	}
	made, err = r.Reminder(ctx, id)
	return made, slot, err
}
