package rows

import (
	"context"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// RefusedSlots returns why the messages of the last slots of a reminder were refused, the newest first: "" for a slot
// whose messages were not, or were sent in part.
func RefusedSlots(ctx context.Context, r store.Reader, reminder int64, slots int) ([]string, error) {
	// A slot's row is the text itself, or the prompt of a turn.
	const query = `SELECT CASE WHEN EXISTS (SELECT 1 FROM messages o WHERE o.turn_id = m.turn_id AND o.direction = 'out' AND o.out_state IN ('sent', 'ambiguous')) THEN ''
		ELSE ifnull((SELECT max(d.error) FROM messages o CROSS JOIN deliveries d ON d.message_id = o.id WHERE (o.id = m.id OR o.turn_id = m.turn_id)
			AND o.out_state = 'failed' AND d.state = 'failed' AND d.error_class = 'permanent'), '') END
		FROM reminder_slots s JOIN messages m ON m.id = s.message_id WHERE s.reminder_id = ? ORDER BY s.slot DESC LIMIT ?+0`
	return store.All(ctx, r, store.One[string], query, reminder, slots)
}

// NextSlot is when the next reminder is due, in unix ms, 0 for never.
func NextSlot(ctx context.Context, r store.Reader) (int64, error) {
	const query = `SELECT next_slot FROM reminders INDEXED BY reminders_due WHERE state = 'active' AND next_slot IS NOT NULL ORDER BY next_slot LIMIT 1`
	return store.Value[int64](ctx, r, query)
}

// CountReminders returns how many reminders are active of a group, and for a chat.
func CountReminders(ctx context.Context, r store.Reader, folder, chatJID string) (ofFolder, ofChat int, err error) {
	const query = `SELECT (SELECT count(*) FROM reminders INDEXED BY reminders_folder WHERE folder = ?1 AND state = 'active'),
		(SELECT count(*) FROM reminders INDEXED BY reminders_chat WHERE chat_jid = ?2 AND state = 'active')`
	_, err = r.Get(ctx, []any{&ofFolder, &ofChat}, query, folder, chatJID)
	return ofFolder, ofChat, err
}

// PlannedPrompts returns when the active prompts of a chat that fire once are due, in unix ms, sorted, but for a
// reminder.
func PlannedPrompts(ctx context.Context, r store.Reader, chatJID string, but int64) ([]int64, error) {
	const query = `SELECT next_slot FROM reminders INDEXED BY reminders_chat WHERE chat_jid = ? AND state = 'active' AND kind = 'prompt'
		AND cron IS NULL AND next_slot IS NOT NULL AND id <> ? ORDER BY next_slot`
	return store.All(ctx, r, store.One[int64], query, chatJID, but)
}

// CountActiveReminders returns how many reminders are active.
func CountActiveReminders(ctx context.Context, r store.Reader) (int, error) {
	return store.Value[int](ctx, r, `SELECT count(*) FROM reminders INDEXED BY reminders_active WHERE state = 'active'`)
}

// NotifiedOfLimit reports whether a chat got a notice since a time, in unix ms, that reminders of a sender wait for its
// rate. Only the chat's last 1,000 rows are considered.
func NotifiedOfLimit(ctx context.Context, r store.Reader, chatJID, payer string, since int64) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM (SELECT source, on_behalf_of, timestamp FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE source = 'notice' AND on_behalf_of = ? AND timestamp > ?)`
	return store.Value[bool](ctx, r, query, chatJID, payer, since)
}

// PutReminder adds an active reminder and sets its id. A chat's former address is replaced by the
// present one.
func PutReminder(tx *store.Tx, r *msg.Reminder) (err error) {
	const query = `INSERT INTO reminders (folder, chat_jid, thread_id, topic, kind, body, due_at, cron, time_zone, missed, state, next_slot,
		created_by, updated_by, created_at, updated_at, root_turn_id, depth) VALUES (?,?,?,?,?,?,?,?,?,?,'active',?,?,?,?,?,?,?)`
	if r.ChatJID, err = tx.Address(store.Uncancelled(), r.ChatJID); err != nil {
		return err
	}
	r.State = msg.ReminderActive
	tx.PokePeers()
	r.ID, err = tx.Insert(query, r.Folder, r.ChatJID, r.ThreadID, r.Topic, r.Kind,
		store.Cut(store.CleanText(r.Body), store.MaxContent), store.Null(r.DueAt), store.Null(r.Cron), r.TimeZone,
		r.Missed, store.Null(r.NextSlot), r.CreatedBy, r.UpdatedBy, r.CreatedAt, r.UpdatedAt,
		store.Null(r.RootTurnID), r.Depth)
	return err
}

// UpdateReminder stores a changed reminder, and makes it active. It returns ErrStale unless its state is still r.State.
func UpdateReminder(tx *store.Tx, r *msg.Reminder) error {
	const query = `UPDATE reminders SET state = 'active', error = '', topic = ?, kind = ?, body = ?, due_at = ?, cron = ?, time_zone = ?, missed = ?,
		next_slot = ?, updated_by = ?, root_turn_id = ?, depth = ?, updated_at = max(?, updated_at + 1) WHERE id = ? AND state = ?`
	tx.PokePeers()
	return change(tx, "update reminder", r.ID, query, r.Topic, r.Kind,
		store.Cut(store.CleanText(r.Body), store.MaxContent), store.Null(r.DueAt), store.Null(r.Cron), r.TimeZone,
		r.Missed, store.Null(r.NextSlot), r.UpdatedBy, store.Null(r.RootTurnID), r.Depth, r.UpdatedAt, r.ID,
		r.State)
}

// EndReminder ends an active reminder; problem is why gated does so itself, "" for another reason. It returns
// ErrStale if the reminder is not active.
func EndReminder(tx *store.Tx, id int64, state msg.ReminderState, by, problem string, now int64) error {
	const query = `UPDATE reminders SET state = ?, next_slot = NULL, error = ?, updated_by = ?, updated_at = max(?, updated_at + 1) WHERE id = ? AND state = 'active'`
	return change(tx, "end reminder", id, query, state, store.CleanName(problem), by, now, id)
}

// Firing is how a due reminder ends.
type Firing struct {
	Slot int64 // that fires, unix ms; 0 for none
	Next int64 // the next one, 0 for none: the reminder is done
	// Message is the row that it makes: an outbound one, or the inbound one that Turn answers.
	Message   *msg.Message
	Turn      *msg.Turn // nil for a text
	MaxAgents int       // see PutTurn
}

// FireReminder makes the message of a reminder's slot, with its turn, and moves the reminder on. fired is false
// if the slot has fired before, or f has none. It returns ErrStale if the reminder was changed since r was read.
func FireReminder(tx *store.Tx, r *msg.Reminder, f Firing, now int64) (fired bool, err error) {
	// Only as it was when its slot was computed.
	const updateFireReminder = `UPDATE reminders SET state = ?, next_slot = ? WHERE id = ? AND state = 'active' AND next_slot IS NOT DISTINCT FROM ? AND updated_at = ?`
	const insertSlot = `INSERT INTO reminder_slots (reminder_id, slot) VALUES (?,?) ON CONFLICT DO NOTHING`
	const updateSlot = `UPDATE reminder_slots SET message_id = ? WHERE reminder_id = ? AND slot = ?`
	tx.Note(failpoint.FireReminder)
	state := msg.ReminderActive
	if f.Next == 0 {
		state = msg.ReminderDone
	}
	err = change(tx, "fire reminder", r.ID, updateFireReminder, state, store.Null(f.Next), r.ID, store.Null(r.NextSlot),
		r.UpdatedAt)
	if err != nil || f.Slot == 0 {
		return false, err
	}
	if n, err := tx.Change(insertSlot, r.ID, f.Slot); err != nil || n == 0 {
		return false, err
	}
	if _, _, err := tx.PutMessage(f.Message); err != nil {
		return false, err
	}
	if f.Turn != nil {
		if err := putReminderTurn(tx, f, now); err != nil {
			return false, err
		}
	}
	err = tx.Exec(updateSlot, f.Message.ID, r.ID, f.Slot)
	return err == nil, err
}

// putReminderTurn stores the turn of a reminder's prompt, and decides the prompt's row.
func putReminderTurn(tx *store.Tx, f Firing, now int64) (err error) {
	if root, err := tx.Turn(store.Uncancelled(), f.Turn.RootTurnID); err != nil {
		return err
	} else if root == nil { // deleted since, by its age
		f.Turn.RootTurnID = 0
	}
	if err := tx.EnsureChat(f.Message.ChatJID, now); err != nil {
		return err
	}
	if f.Turn.ChatJID, err = tx.Address(store.Uncancelled(), f.Turn.ChatJID); err != nil {
		return err
	}
	f.Turn.TriggerMessageID = f.Message.ID
	if _, err := PutTurn(tx, f.Turn, f.MaxAgents); err != nil {
		return err
	}
	return tx.Decide(f.Message.ID, store.Decision{
		Disposition: msg.Routed, Reason: msg.ReasonReminder, RoutedTo: f.Turn.Folder, TurnID: f.Turn.ID,
		Topic: f.Message.Topic, ReceivedAt: f.Message.ReceivedAt,
	}, now)
}

// ScheduleReminder sets when an active reminder fires next, 0 for never: then it is done. It returns ErrStale if
// the reminder was changed since r was read.
func ScheduleReminder(tx *store.Tx, r *msg.Reminder, next int64) error {
	_, err := FireReminder(tx, r, Firing{Next: next}, 0)
	return err
}
