package store

import (
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

func scanReminder(scan scanner) (*msg.Reminder, error) {
	var r msg.Reminder
	err := scan(&r.ID, &r.Folder, &r.ChatJID, &r.ThreadID, &r.Topic, &r.Kind, &r.Body, &r.DueAt, &r.Cron, &r.TimeZone,
		&r.Missed, &r.State, &r.NextSlot, &r.CreatedBy, &r.UpdatedBy, &r.Error, &r.CreatedAt, &r.UpdatedAt,
		&r.RootTurnID, &r.Depth)
	return &r, err
}

func (r Reader) reminders(ctx context.Context, query string, args ...any) ([]*msg.Reminder, error) {
	return collect(ctx, r, scanReminder, query, args...)
}

// Reminder returns a reminder by id, nil if there is none.
func (r Reader) Reminder(ctx context.Context, id int64) (*msg.Reminder, error) {
	return first(r.reminders(ctx, queryReminder, id))
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

// NextSlot is when the next reminder is due, in unix ms, 0 for never.
func (r Reader) NextSlot(ctx context.Context) (int64, error) {
	return value[int64](ctx, r, queryNextSlot)
}

// CountReminders returns how many reminders are active of a group, and for a chat.
func (r Reader) CountReminders(ctx context.Context, folder, chatJID string) (ofFolder, ofChat int, err error) {
	_, err = r.get(ctx, []any{&ofFolder, &ofChat}, queryCountReminders, folder, chatJID)
	return ofFolder, ofChat, err
}

// PlannedPrompts returns when the active prompts of a chat that fire once are due, in unix ms, sorted, but for a
// reminder.
func (r Reader) PlannedPrompts(ctx context.Context, chatJID string, but int64) ([]int64, error) {
	return collect(ctx, r, one[int64], queryPlannedPrompts, chatJID, but)
}

// CountActiveReminders returns how many reminders are active.
func (r Reader) CountActiveReminders(ctx context.Context) (int, error) {
	return value[int](ctx, r, queryCountActive)
}

// LastSlot returns the last slot for which a reminder fired, in unix ms, and the row that it made; 0 for
// none, or one that was deleted since.
func (r Reader) LastSlot(ctx context.Context, reminder int64) (slot, message int64, err error) {
	_, err = r.get(ctx, []any{&slot, &message}, queryLastSlot, reminder)
	return slot, message, err
}

// NotifiedOfLimit reports whether a chat got a notice since a time, in unix ms, that reminders of a sender wait for its
// rate. Only the chat's last 1,000 rows are considered.
func (r Reader) NotifiedOfLimit(ctx context.Context, chatJID, payer string, since int64) (bool, error) {
	return value[bool](ctx, r, queryNotifiedOfLimit, chatJID, payer, since)
}

// ReminderOf returns the reminder that made a row, and the slot, in unix ms; nil if none did.
func (r Reader) ReminderOf(ctx context.Context, message int64) (made *msg.Reminder, slot int64, err error) {
	var id int64
	found, err := r.get(ctx, []any{&id, &slot}, queryReminderOf, message)
	if err != nil || !found {
		return nil, 0, err
	}
	made, err = r.Reminder(ctx, id)
	return made, slot, err
}

// PutReminder adds an active reminder and sets its id. A chat's former address is replaced by the
// present one.
func (tx *Tx) PutReminder(r *msg.Reminder) (err error) {
	if r.ChatJID, err = tx.Address(uncancelled(), r.ChatJID); err != nil {
		return err
	}
	r.State = msg.ReminderActive
	tx.pokePeers()
	r.ID, err = tx.insert(insertReminder, r.Folder, r.ChatJID, r.ThreadID, r.Topic, r.Kind,
		cut(cleanText(r.Body), maxContent), null(r.DueAt),
		null(r.Cron), r.TimeZone, r.Missed, null(r.NextSlot), r.CreatedBy, r.UpdatedBy, r.CreatedAt, r.UpdatedAt,
		null(r.RootTurnID), r.Depth)
	return err
}

// UpdateReminder stores a changed reminder. It returns ErrStale if it is not active.
func (tx *Tx) UpdateReminder(r *msg.Reminder) error {
	tx.pokePeers()
	n, err := tx.change(updateReminder, r.Topic, r.Kind, cut(cleanText(r.Body), maxContent), null(r.DueAt),
		null(r.Cron), r.TimeZone,
		r.Missed, null(r.NextSlot), r.UpdatedBy, null(r.RootTurnID), r.Depth, r.UpdatedAt, r.ID)
	if err == nil && n == 0 {
		err = fmt.Errorf("update reminder %d: %w", r.ID, ErrStale)
	}
	return err
}

// EndReminder ends an active reminder; problem is why gated does so itself, "" for another reason. It returns
// ErrStale if the reminder is not active.
func (tx *Tx) EndReminder(id int64, state msg.ReminderState, by, problem string, now int64) error {
	n, err := tx.change(updateEndReminder, state, cleanName(problem), by, now, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("end reminder %d: %w", id, ErrStale)
	}
	return err
}

// Firing is what becomes of a due reminder.
type Firing struct {
	Slot int64 // that fires, unix ms; 0 for none
	Next int64 // the next one, 0 for none: the reminder is done
	// Message is what it makes: an outbound row, or the inbound row that Turn answers.
	Message   *msg.Message
	Turn      *msg.Turn // nil for a text
	MaxAgents int       // see PutTurn
}

// FireReminder makes the message of a reminder's slot, with its turn, and moves the reminder on. fired is false
// if the slot has fired before, or f has none. It returns ErrStale if the reminder was changed since r was read.
func (tx *Tx) FireReminder(r *msg.Reminder, f Firing, now int64) (fired bool, err error) {
	tx.note(failpoint.FireReminder)
	state := msg.ReminderActive
	if f.Next == 0 {
		state = msg.ReminderDone
	}
	n, err := tx.change(updateFireReminder, state, null(f.Next), r.ID, null(r.NextSlot), r.UpdatedAt)
	if err != nil {
		return false, err
	}
	if n == 0 {
		return false, fmt.Errorf("fire reminder %d: %w", r.ID, ErrStale)
	}
	if f.Slot == 0 {
		return false, nil
	}
	if n, err = tx.change(insertSlot, r.ID, f.Slot); err != nil || n == 0 {
		return false, err
	}
	if _, _, err := tx.PutMessage(f.Message); err != nil {
		return false, err
	}
	if f.Turn != nil {
		if err := tx.putReminderTurn(f, now); err != nil {
			return false, err
		}
	}
	err = tx.exec(updateSlot, f.Message.ID, r.ID, f.Slot)
	return err == nil, err
}

// putReminderTurn stores the turn of a reminder's prompt, and decides the prompt's row.
func (tx *Tx) putReminderTurn(f Firing, now int64) (err error) {
	if root, err := tx.Turn(uncancelled(), f.Turn.RootTurnID); err != nil {
		return err
	} else if root == nil { // deleted since, by its age
		f.Turn.RootTurnID = 0
	}
	if err := tx.EnsureChat(f.Message.ChatJID, now); err != nil {
		return err
	}
	if f.Turn.ChatJID, err = tx.Address(uncancelled(), f.Turn.ChatJID); err != nil {
		return err
	}
	f.Turn.TriggerMessageID = f.Message.ID
	if _, err := tx.PutTurn(f.Turn, f.MaxAgents); err != nil {
		return err
	}
	return tx.Decide(f.Message.ID, Decision{
		Disposition: msg.Routed, Reason: msg.ReasonReminder, RoutedTo: f.Turn.Folder, TurnID: f.Turn.ID,
		Topic: f.Message.Topic,
	}, now)
}

// ScheduleReminder sets when an active reminder fires next, 0 for never: then it is done. It returns ErrStale if
// the reminder was changed since r was read.
func (tx *Tx) ScheduleReminder(r *msg.Reminder, next int64) error {
	_, err := tx.FireReminder(r, Firing{Next: next}, 0)
	return err
}
