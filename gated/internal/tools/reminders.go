package tools

import (
	"cmp"
	"context"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/timed/reminders"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// reminderOut is a reminder as an agent sees it.
type reminderOut struct {
	ID       int64  `json:"id" jsonschema:"its id, for reminder_update and reminder_cancel"`
	Kind     string `json:"kind" jsonschema:"text or prompt"`
	Body     string `json:"body" jsonschema:"the text that is sent, or the prompt"`
	ChatJID  string `json:"chat_jid" jsonschema:"the chat"`
	ThreadID string `json:"thread_id,omitempty" jsonschema:"the thread into which it is sent; left out: the chat outside of threads"`
	Topic    string `json:"topic" jsonschema:"the topic in which a prompt runs"`
	DueAt    string `json:"due_at,omitempty" jsonschema:"when it fires, if it fires once"`
	Cron     string `json:"cron,omitempty" jsonschema:"when it fires, if it repeats"`
	TimeZone string `json:"time_zone" jsonschema:"its time zone"`
	Missed   string `json:"missed" jsonschema:"one or skip"`
	State    string `json:"state" jsonschema:"active, done or cancelled"`
	NextAt   string `json:"next_at,omitempty" jsonschema:"when it fires next, in its time zone"`
	Error    string `json:"error,omitempty" jsonschema:"why arizuko cancelled it"`
}

func newReminderOut(r *msg.Reminder) reminderOut {
	zone, err := reminders.ParseZone(r.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	return reminderOut{
		ID: r.ID, Kind: string(r.Kind), Body: r.Body, ChatJID: r.ChatJID, ThreadID: r.ThreadID, Topic: r.Topic,
		DueAt: timeText(r.DueAt, zone), Cron: r.Cron,
		TimeZone: reminders.ZoneText(r.TimeZone, time.UnixMilli(cmp.Or(r.NextSlot, r.DueAt, r.CreatedAt)).In(zone)),
		Missed:   string(r.Missed), State: string(r.State), NextAt: timeText(r.NextSlot, zone), Error: r.Error,
	}
}

// reminderBounds are those of the fields that creating and updating share.
func reminderBounds() map[string]Bound {
	const maxTime, maxCron, maxZone = 40, 200, 64
	return map[string]Bound{
		"kind": OneOf(string(msg.ReminderText), string(msg.ReminderPrompt)), "body": Text(1, reminders.MaxBody),
		"due_at": Text(1, maxTime),
		"cron":   Text(1, maxCron), "time_zone": Text(1, maxZone),
		"missed": OneOf(string(msg.MissedOne), string(msg.MissedSkip)), "topic": Text(0, maxTopic),
	}
}

// ownReminder returns an active reminder of a group within the caller's reach, or a refusal.
func (c *Caller) ownReminder(ctx context.Context, r store.Reader, id int64) (*msg.Reminder, error) {
	stored, err := factrows.Reminder(ctx, r, id)
	if err != nil {
		return nil, err
	}
	shown := false
	if stored != nil {
		if shown, err = c.shows(ctx, r, stored.Folder, stored.ChatJID); err != nil {
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

// reminderTopic returns the topic of a reminder: that of the turn that makes it, or one of the chat.
func reminderTopic(t *msg.Turn, topic *string) (string, error) {
	if topic == nil {
		return t.Topic, nil
	}
	if *topic != "" && *topic != t.Topic && !msg.ValidTopic(*topic) {
		return "", refuse("topic %.80q is not valid: write %s", *topic, msg.TopicRule)
	}
	return *topic, nil
}

// activateReminder makes a reminder of the caller's chat an active context object.
func (c *Caller) activateReminder(ctx context.Context, tx *store.Tx, event contextobjects.Event,
	r *msg.Reminder) error {
	if r.ChatJID != c.Turn.ChatJID {
		return nil
	}
	return c.activateObject(ctx, tx, event, contextobjects.Object{
		Kind: msg.ContextReminder, ID: msg.ContextObjectID(msg.ContextReminder, r.ID),
		Label: r.Body, CreatedBy: r.CreatedBy, CreatedByBot: true, DueAt: r.NextSlot,
	})
}

// errReminderDepth ends chains of prompts that plan prompts.
var errReminderDepth = refuse("this request has been passed on %d levels deep, reminders included, which is the limit: make one reminder that repeats by cron, or tell the user what is left undone", msg.MaxDelegationDepth)

// planned ends a call of plan with its error: the scheduler looks again, or the chat gets the notice that a chain has
// ended.
func (c *Caller) planned(ctx context.Context, err error) error {
	if err == nil {
		c.Services.Reminders.Changed()
	}
	return c.noticeLimit(ctx, err)
}

// plan changes a reminder as the caller asks, or returns a refusal. From then on the sender of the caller's turn pays
// for it.
func (c *Caller) plan(ctx context.Context, tx *store.Tx, r *msg.Reminder, spec reminders.Spec) error {
	was := *r
	if err := spec.Apply(r, c.Services.Zone, c.Services.Now()); err != nil {
		return refuse("%v", err)
	}
	r.UpdatedBy, r.RootTurnID, r.Depth = c.origin.Sender, c.Turn.Root(), c.Turn.Depth
	if r.Kind != msg.ReminderPrompt {
		return nil
	}
	if r.Depth >= msg.MaxDelegationDepth {
		return errReminderDepth
	}
	if r.Cron != "" || r.NextSlot == was.NextSlot && r.Kind == was.Kind {
		return nil
	}
	members, err := membersOf(ctx, tx.Reader, r.Folder)
	if err != nil {
		return err
	}
	var planned []int64
	if c.origin.Pays(members) { // where turns have no limit, these have none
		if planned, err = rows.PlannedPrompts(ctx, tx.Reader, r.ChatJID, r.ID); err != nil {
			return err
		}
	}
	earliest := int64(0)
	if r.Depth > 0 || c.Turn.Kind == msg.Broadcast { // it might plan itself without a pause
		earliest = c.Services.now() + reminders.MinDistance.Milliseconds()
	}
	if free := reminders.FreeSlot(r.NextSlot, earliest, planned); free != r.NextSlot {
		zone, err := reminders.ParseZone(r.TimeZone)
		if err != nil {
			return err
		}
		return refuse("prompts that fire once are a minute apart in a chat, and come a minute after a prompt that makes them: the first free time is %s",
			time.UnixMilli(free).In(zone).Format(time.RFC3339))
	}
	return nil
}
