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

// Reminder returns a reminder by id, nil if there is none.
func (r Reader) Reminder(ctx context.Context, id int64) (*msg.Reminder, error) {
	return First(All(ctx, r, scanReminder, queryReminder, id))
}

// ReminderList is which reminders are listed: those of a group or those of a chat in a state; else those that are
// active.
type ReminderList struct {
	Folder  string
	ChatJID string
	State   msg.ReminderState // of a group's or a chat's
	DueBy   int64             // active ones alone: whose next slot is not after it, in unix ms, those due longest first; 0 for all
	After   int64             // only those with a greater id, not together with DueBy
	Limit   int
}

// Reminders lists reminders, by id.
func (r Reader) Reminders(ctx context.Context, l ReminderList) ([]*msg.Reminder, error) {
	query, args := queryActiveReminders, []any{l.After}
	switch {
	case l.Folder != "":
		query, args = queryFolderReminders, []any{l.Folder, l.State, l.After}
	case l.ChatJID != "":
		query, args = queryChatReminders, []any{l.ChatJID, l.State, l.After}
	case l.DueBy != 0:
		query, args = queryDueReminders, []any{l.DueBy}
	}
	return All(ctx, r, scanReminder, query, append(args, l.Limit)...)
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
