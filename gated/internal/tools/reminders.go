package tools

import (
	"cmp"
	"context"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/reminders"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// reminderOut is a reminder as an agent sees it.
type reminderOut struct {
	ID       int64  `json:"id" jsonschema:"its id, for reminder_update and reminder_cancel"`
	Kind     string `json:"kind" jsonschema:"text or prompt"`
	Body     string `json:"body" jsonschema:"the text that is sent, or the prompt"`
	ChatJID  string `json:"chat_jid" jsonschema:"the chat"`
	Topic    string `json:"topic" jsonschema:"the topic in which a prompt runs"`
	DueAt    string `json:"due_at,omitempty" jsonschema:"when it fires, if it fires once"`
	Cron     string `json:"cron,omitempty" jsonschema:"when it fires, if it repeats"`
	TimeZone string `json:"time_zone" jsonschema:"its time zone"`
	Missed   string `json:"missed" jsonschema:"one or skip: what becomes of times that pass while arizuko is down"`
	State    string `json:"state" jsonschema:"active, done or cancelled"`
	NextAt   string `json:"next_at,omitempty" jsonschema:"when it fires next, in its time zone"`
	Error    string `json:"error,omitempty" jsonschema:"why arizuko cancelled it"`
}

func newReminderOut(r *msg.Reminder) reminderOut {
	zone, err := reminders.ParseZone(r.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	at := func(ms int64) string {
		if ms == 0 {
			return ""
		}
		return time.UnixMilli(ms).In(zone).Format(time.RFC3339)
	}
	return reminderOut{
		ID: r.ID, Kind: string(r.Kind), Body: r.Body, ChatJID: r.ChatJID, Topic: r.Topic, DueAt: at(r.DueAt), Cron: r.Cron,
		TimeZone: reminders.ZoneText(r.TimeZone, time.UnixMilli(cmp.Or(r.NextSlot, r.DueAt, r.CreatedAt)).In(zone)),
		Missed:   string(r.Missed), State: string(r.State), NextAt: at(r.NextSlot), Error: r.Error,
	}
}

// reminderBounds are those of the fields that creating and updating share.
func reminderBounds() map[string]Bound {
	const maxTime, maxCron, maxZone = 40, 200, 64
	return map[string]Bound{
		"kind": OneOf(string(msg.ReminderText), string(msg.ReminderPrompt)), "body": Text(1, reminders.MaxBody), "due_at": Text(1, maxTime),
		"cron": Text(1, maxCron), "time_zone": Text(1, maxZone), "missed": OneOf(string(msg.MissedOne), string(msg.MissedSkip)), "topic": Text(0, maxTopic),
	}
}

// ownReminder returns an active reminder of a group within the caller's reach, or a refusal.
func (c *Caller) ownReminder(ctx context.Context, r store.Reader, id int64) (*msg.Reminder, error) {
	stored, err := r.Reminder(ctx, id)
	if err != nil {
		return nil, err
	}
	shown := false
	if stored != nil && c.Reaches(stored.Folder) {
		if shown, err = c.observes(ctx, r, stored.ChatJID); err != nil {
			return nil, err
		}
	}
	if !shown {
		return nil, refuse("no reminder %d is in reach: take an id from reminder_list. Those of a direct message are changed there", id)
	}
	if stored.State != msg.ReminderActive {
		return nil, refuse("reminder %d is %s: make a new one with reminder_create", id, stored.State)
	}
	return stored, nil
}

// reminderTopic returns the topic of a reminder: the caller's, or one of the chat.
func (c *Caller) reminderTopic(topic *string) (string, error) {
	if topic == nil {
		return c.Turn.Topic, nil
	}
	if *topic != "" && *topic != c.Turn.Topic && !msg.ValidTopic(*topic) {
		return "", refuse("topic %.80q is not valid: write # and a name of letters, digits, - and _, such as #standup", *topic)
	}
	return *topic, nil
}

// activateReminder makes a reminder of the caller's chat an active context object.
func (c *Caller) activateReminder(ctx context.Context, tx *store.Tx, event contextobjects.Event, r *msg.Reminder) error {
	if r.ChatJID != c.Turn.ChatJID {
		return nil
	}
	topic, _, err := c.contextTopic(ctx, tx.Reader)
	if err != nil {
		return err
	}
	_, err = c.Services.Objects.Activate(tx, event, contextobjects.Object{
		ChatJID: c.Turn.ChatJID, Topic: topic, Kind: msg.ContextReminder, ID: msg.ContextObjectID(msg.ContextReminder, r.ID),
		Label: r.Body, CreatedBy: r.CreatedBy, CreatedByBot: true, DueAt: r.NextSlot,
	}, c.Services.now())
	return err
}

// sender is who wrote the message that the turn answers.
func (c *Caller) sender(ctx context.Context, r store.Reader) (string, error) {
	m, err := r.Message(ctx, c.Turn.TriggerMessageID)
	if err != nil || m == nil {
		return msg.AgentSender(c.Turn.Folder), err
	}
	return m.Sender, nil
}
