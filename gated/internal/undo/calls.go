package undo

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// call is a tool call of the turn: what of its result an undo needs.
type call struct {
	rows.ActedCall

	ID         int64         `json:"id"`      // of reminders
	NextAt     string        `json:"next_at"` // of those, RFC 3339
	Cron       string        `json:"cron"`
	PollID     int64         `json:"poll_id"`
	Topic      string        `json:"topic"` // of a fork
	ObjectID   string        `json:"object_id"`
	MessageIDs []int64       `json:"message_ids"` // of a broadcast
	Replaced   *msg.Reminder `json:"replaced"`
}

// calls reads the calls by which the turn has acted, newest first. Results that cannot be read count as none.
func (f *finishing) calls() (all []call, err error) {
	stored, err := rows.ActedCalls(context.Background(), f.tx.Reader, f.turn.ID)
	for _, s := range stored {
		c := call{ActedCall: s}
		if json.Unmarshal(s.Result, &c) == nil {
			all = append(all, c)
		}
	}
	return all, err
}

// takeBackCalls ends what the turn's tool calls have made, and brings back what they have ended.
func (f *finishing) takeBackCalls() error {
	all, err := f.calls()
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := f.takeBackCall(&c); err != nil {
			return err
		}
	}
	return f.endObjects()
}

func (f *finishing) takeBackCall(c *call) error {
	switch c.Tool {
	case "reminder_create":
		return f.endReminder(c.ID)
	case "reminder_update":
		return f.resetReminder(c)
	case "reminder_cancel":
		return f.reviveReminder(c)
	case "poll_create":
		return f.endPoll(c.PollID)
	case "poll_close":
		f.stays.add("polls that it closed:")
	case "fork_topic":
		f.did.add("forks ended:")
		return f.tx.EndFork(f.turn.ChatJID, c.Topic, f.now)
	case "activate_context_object":
		return rows.DeleteContextObject(f.tx, f.turn.ChatJID, c.ObjectID)
	case "broadcast":
		return f.removeBroadcast(c.MessageIDs)
	case "delegate", "escalate":
		f.stays.add("what other groups have done for it")
	case "inject_message":
		f.stays.add("messages that it wrote like a user:")
	}
	return nil
}

func (f *finishing) endReminder(id int64) error {
	err := rows.EndReminder(f.tx, id, msg.ReminderCancelled, f.u.By, "", f.now)
	return f.reminder(err)
}

// reminder counts a changed reminder, unless the change came too late.
func (f *finishing) reminder(err error) error {
	if err == nil {
		f.did.add("reminders " + f.side() + ":")
	}
	return unlessStale(err)
}

func (f *finishing) resetReminder(c *call) error {
	if c.Replaced == nil {
		return nil
	}
	was := *c.Replaced
	was.UpdatedAt = f.now
	return f.reminder(rows.UpdateReminder(f.tx, &was))
}

func (f *finishing) reviveReminder(c *call) error {
	switch {
	case c.Replaced == nil:
		return nil
	case c.Replaced.Cron == "" && c.Replaced.NextSlot <= f.now:
		f.stays.add("ends of reminders whose time is over:")
		return nil
	}
	return f.revive(c.ID, c.Replaced.NextSlot)
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
	return nil
}

// revive makes a cancelled reminder active again.
func (f *finishing) revive(id, next int64) error {
	return f.reminder(rows.ReviveReminder(f.tx, id, next, f.now))
}

// unlessStale is an error, unless it says that something has been changed since.
func unlessStale(err error) error {
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

// repeatCalls brings reminders back that the undo has ended, and ends again those that it brought back.
func (f *finishing) repeatCalls() error {
	all, err := f.calls()
	if err != nil {
		return err
	}
	for _, c := range slices.Backward(all) {
		if err := f.repeatCall(&c); err != nil {
			return err
		}
	}
	return nil
}

func (f *finishing) repeatCall(c *call) error {
	switch c.Tool {
	case "reminder_create":
		if next, err := time.Parse(time.RFC3339, c.NextAt); err == nil && (c.Cron != "" || next.UnixMilli() > f.now) {
			return f.revive(c.ID, next.UnixMilli())
		}
		f.stays.add("reminders whose time is over:")
	case "reminder_update":
		f.stays.add("changes of reminders:")
	case "reminder_cancel":
		return f.endReminder(c.ID)
	case "fork_topic":
		f.did.add("forks opened again:")
		return rows.ReopenFork(f.tx, f.turn.ChatJID, c.Topic, f.turn.UndoneAt)
	case "broadcast":
		f.stays.add("the messages to other chats, which are not sent again")
	}
	return nil
}
