package undo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// call is a tool call of the turn: what of its result an undo needs.
type call struct {
	rows.ActedCall

	ID         int64   `json:"id"` // of reminders
	PollID     int64   `json:"poll_id"`
	Topic      string  `json:"topic"` // of a fork
	ObjectID   string  `json:"object_id"`
	MessageIDs []int64 `json:"message_ids"` // of a broadcast
	// Replaced is a reminder as it was, or the place or the session that the call is about; nil for none.
	Replaced *struct {
		msg.Reminder

		JID         string
		GroupFolder string
	} `json:"replaced"`
}

// calls reads the calls by which a turn has acted, newest first. Results that cannot be read count as none.
func calls(ctx context.Context, r store.Reader, turn int64) (all []call, err error) {
	stored, err := rows.ActedCalls(ctx, r, turn)
	for _, s := range stored {
		c := call{ActedCall: s}
		if json.Unmarshal(s.Result, &c) == nil {
			all = append(all, c)
		}
	}
	return all, err
}

// Windows returns the open windows that a turn has opened for its group: in its place, unless the agent listened there
// already, and with engage.
func Windows(ctx context.Context, r store.Reader, t *msg.Turn, now int64) (open []msg.Engagement, err error) {
	trigger, err := r.Message(ctx, t.TriggerMessageID)
	if err != nil || trigger == nil {
		return nil, err
	}
	all, err := calls(ctx, r, t.ID)
	if err != nil {
		return nil, err
	}
	var places []msg.Engagement
	if t.ClaimsEngagement && trigger.Reason != msg.ReasonEngaged {
		places = append(places, msg.Engagement{ChatJID: t.ChatJID, Place: t.Place})
	}
	for _, c := range all {
		if c.Tool == "engage" && c.Replaced != nil {
			places = append(places, msg.Engagement{ChatJID: c.Replaced.JID, Place: c.Replaced.Topic})
		}
	}
	for _, p := range places {
		e, err := factrows.Engagement(ctx, r, p.ChatJID, p.Place)
		if err != nil {
			return nil, err
		}
		opened := e.Folder == t.Folder && e.Open(now, e.PinnedAt) && trigger.ReceivedAt <= e.At && e.At <= t.EndedAt
		if opened && !slices.Contains(open, e.Engagement) {
			open = append(open, e.Engagement)
		}
	}
	return open, nil
}

// reverseCalls ends what the turn's tool calls have made, and brings back what they have ended; in a redo it ends and
// brings back what the undo did.
func (f *finishing) reverseCalls() error {
	all, err := calls(context.Background(), f.tx.Reader, f.turn.ID)
	if err != nil {
		return err
	}
	if err := f.reminders(all); err != nil {
		return err
	}
	do := f.takeBackCall
	if f.u.Redo {
		do = f.repeatCall
		slices.Reverse(all)
	}
	for _, c := range all {
		if err := do(&c); err != nil {
			return err
		}
	}
	return nil
}

func (f *finishing) takeBackCall(c *call) error {
	switch c.Tool {
	case "reminder_create", "reminder_update", "reminder_cancel": // see reminders
	case "send_message", "edit_message", "send_file", "react", "ask_user": // see takeBackMessages and endObjects
	case "resolve_reference_target", "get_attachment": // nothing but a longer time, or a file
	case "poll_create":
		return f.endPoll(c.PollID)
	case "poll_close":
		f.stays.add("polls that it closed:")
	case "fork_topic":
		f.did.add("forks ended:")
		return f.tx.EndFork(f.turn.ChatJID, c.Topic, f.now)
	case "engage": // see Windows
	case "disengage":
		return f.reopen(c)
	case "reset_session":
		if c.Replaced == nil || c.Replaced.GroupFolder != f.turn.Folder || c.Replaced.Topic != f.turn.Topic {
			f.stays.add("sessions of others that it reset:")
		}
	case "activate_context_object":
		return rows.DeleteContextObject(f.tx, f.turn.ChatJID, c.ObjectID)
	case "broadcast":
		return f.removeBroadcast(c.MessageIDs)
	case "delegate", "escalate":
		f.stays.add("what other groups have done for it")
	case "inject_message":
		f.stays.add("messages that it wrote like a user:")
	default:
		f.stays.add("what it did with " + c.Tool)
	}
	return nil
}

// reopen opens a fork again that disengage has ended.
func (f *finishing) reopen(c *call) error {
	if c.Replaced == nil {
		return nil
	}
	fork, err := f.tx.Fork(context.Background(), c.Replaced.JID, c.Replaced.Topic)
	switch {
	case err != nil:
		return err
	case fork == nil:
		f.stays.add("places where it listens no longer:")
		return nil
	case fork.EndedAt < f.turn.StartedAt || fork.EndedAt > c.At: // it had ended before
		return nil
	}
	f.did.add("forks opened again:")
	return rows.ReopenFork(f.tx, fork.ChatJID, fork.Topic, fork.EndedAt)
}

// reminders lets each reminder that the turn's calls are about be as before the oldest of them, or as after the newest
// one. The calls are sorted, newest first.
func (f *finishing) reminders(all []call) error {
	oldest, newest := map[int64]*call{}, map[int64]*call{}
	for i := range all {
		if c := &all[i]; strings.HasPrefix(c.Tool, "reminder_") {
			oldest[c.ID] = c
			newest[c.ID] = cmp.Or(newest[c.ID], c)
		}
	}
	last, err := rows.LastUndoAt(context.Background(), f.tx.Reader, f.turn.ID)
	for _, id := range slices.Sorted(maps.Keys(oldest)) {
		if err == nil {
			err = f.reminder(oldest[id], newest[id], last)
		}
	}
	return err
}

// reminder changes one reminder, unless it was changed since the turn, or the last undo or redo of it, did that.
func (f *finishing) reminder(oldest, newest *call, last int64) error {
	r, err := factrows.Reminder(context.Background(), f.tx.Reader, newest.ID)
	if err != nil {
		return err
	}
	made, ended := oldest.Tool == "reminder_create", newest.Tool == "reminder_cancel"
	var to msg.Reminder // what it becomes, with the id 0 cancelled
	switch {
	case made && ended, !f.u.Redo && !made && oldest.Replaced == nil: // the latter of a former version
		return nil
	case f.u.Redo && made && r != nil:
		to = *r
		to.UpdatedBy = r.CreatedBy
	case f.u.Redo && !made && !ended:
		f.stays.add("changes of reminders:")
		return nil
	case !f.u.Redo && !made:
		to = oldest.Replaced.Reminder
	}
	ours := r != nil && (r.UpdatedAt == last || !f.u.Redo && r.UpdatedAt <= newest.At)
	if !ours || r.State == msg.ReminderDone || to.ID == 0 && r.State != msg.ReminderActive {
		f.stays.add("reminders that have fired or were changed since:")
		return nil
	}
	if to.ID == 0 {
		err = rows.EndReminder(f.tx, r.ID, msg.ReminderCancelled, f.u.By, "", f.now)
	} else {
		if to.NextSlot, err = f.next(&to, f.now); err == nil && to.NextSlot <= f.now {
			f.stays.add("reminders whose time is over:")
			return nil
		}
		to.State, to.UpdatedAt = r.State, f.now
		err = errors.Join(err, rows.UpdateReminder(f.tx, &to))
	}
	f.did.add("reminders restored:")
	return errors.Join(err, rows.DeleteContextObject(f.tx, r.ChatJID, msg.ContextObjectID(msg.ContextReminder, r.ID)))
}

// endPoll closes a poll. Its message is deleted with those of the turn.
func (f *finishing) endPoll(id int64) error {
	if err := rows.ClosePoll(f.tx, id, f.now); err != nil {
		return unlessStale(err)
	}
	f.did.add("polls closed:")
	return rows.EndPoll(f.tx, id, nil, f.now)
}

func (f *finishing) removeBroadcast(messages []int64) error {
	for _, id := range messages {
		m, err := f.tx.Message(context.Background(), id)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if err := f.takeBack(m); err != nil {
			return err
		}
	}
	return nil
}

// endObjects ends the context objects that come from messages of the turn, and the questions that these show.
func (f *finishing) endObjects() error {
	asking, err := factrows.TurnMessages(context.Background(), f.tx.Reader, f.turn.ID)
	if err != nil {
		return err
	}
	sent, err := rows.TurnOutbound(context.Background(), f.tx.Reader, f.turn.ID)
	if err != nil {
		return err
	}
	for _, m := range slices.Concat(asking, sent) {
		err := errors.Join(rows.EndAskOf(f.tx, m.ID, f.now), rows.DeleteContextObjectsOf(f.tx, m.ChatJID, m.ID))
		if err != nil {
			return err
		}
	}
	return rows.DropNotes(f.tx, f.turn)
}

// unlessStale is an error, unless it says that something has been changed since.
func unlessStale(err error) error {
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

func (f *finishing) repeatCall(c *call) error {
	switch c.Tool {
	case "fork_topic":
		f.did.add("forks opened again:")
		return rows.ReopenFork(f.tx, f.turn.ChatJID, c.Topic, f.turn.UndoneAt)
	case "disengage":
		if c.Replaced != nil {
			return f.tx.EndFork(c.Replaced.JID, c.Replaced.Topic, f.now)
		}
	case "broadcast":
		f.stays.add("messages to other chats, which are not sent again:")
	}
	return nil
}
