package tools

import (
	"context"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/timed/reminders"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type reminderCreateIn struct {
	Kind     string  `json:"kind" jsonschema:"text: the body is sent to the chat as it is; prompt: the body is a task for yourself, whose answer is sent"`
	Body     string  `json:"body" jsonschema:"the text in markdown, or the task, with all that you need to know then"`
	DueAt    string  `json:"due_at,omitempty" jsonschema:"for a reminder that fires once: RFC 3339 with an offset, as 2026-11-23T09:00:00+01:00, or without one for the local time of time_zone; prompts of a chat are a minute apart at least"`
	Cron     string  `json:"cron,omitempty" jsonschema:"for one that repeats: minute hour day-of-month month day-of-week, as 30 9 * * mon-fri; at most every 10 minutes"`
	TimeZone string  `json:"time_zone,omitempty" jsonschema:"an IANA name such as Europe/Berlin; left out: that of this instance"`
	Missed   string  `json:"missed,omitempty" jsonschema:"if times pass while arizuko is down: one (default): the last one fires late; skip: none does"`
	Topic    *string `json:"topic,omitempty" jsonschema:"the topic in which a prompt runs; left out: the current one"`
}

func reminderCreate() Tool {
	return define(Tool{
		Name: "reminder_create", Title: "Make a reminder", Kind: Adds,
		Description: "Makes a reminder in this chat: a text to send, or a prompt for yourself, once at due_at or regularly by cron. Use it when a user wants to be reminded, or wants something done later or regularly. " +
			"It is sent to the thread or forum topic where you make it, or else to the top level of the chat; in Slack channels always to the top level. Tell the user when it fires: next_at.",
		Bounds: reminderBounds(),
	}, func(ctx context.Context, c *Caller, in reminderCreateIn) (out reminderOut, err error) {
		topic, err := reminderTopic(c.Turn, in.Topic)
		if err != nil {
			return out, err
		}
		r := msg.Reminder{Folder: c.Turn.Folder, ChatJID: c.Turn.ChatJID, Topic: topic, Missed: msg.MissedOne}
		spec := reminders.Spec{Kind: in.Kind, Body: c.markdown(in.Body), DueAt: in.DueAt, Cron: in.Cron,
			TimeZone: in.TimeZone, Missed: in.Missed}
		out, err = once(ctx, c, in, func(tx *store.Tx) (reminderOut, error) {
			return c.createReminder(ctx, tx, r, spec)
		})
		return out, c.planned(ctx, err)
	})
}

// createReminder stores a reminder of the caller.
func (c *Caller) createReminder(ctx context.Context, tx *store.Tx, r msg.Reminder,
	spec reminders.Spec) (out reminderOut, err error) {
	if err := c.checkReaders(); err != nil {
		return out, err
	}
	kind, err := rows.ChatKind(ctx, tx.Reader, r.ChatJID)
	if err != nil {
		return out, err
	}
	r.ThreadID = msg.ReminderThread(r.ChatJID, kind, c.Turn.ThreadID)
	if err := checkTakes(ctx, tx.Reader, r.ChatJID, r.ThreadID,
		"ask the user to say it in a post, where the reminder is sent then"); err != nil {
		return out, err
	}
	may, err := c.Services.Chats.MayWrite(ctx, tx.Reader, r.ChatJID, r.Folder)
	if err != nil {
		return out, err
	}
	if !may {
		return out, refuse("group %s does not answer this chat itself: tell the user to ask for it without @ and the name of a group, or the group that delegated to you", c.Turn.Folder)
	}
	if err := c.plan(ctx, tx, &r, spec); err != nil {
		return out, err
	}
	ofFolder, ofChat, err := rows.CountReminders(ctx, tx.Reader, r.Folder, r.ChatJID)
	if err != nil {
		return out, err
	}
	if ofFolder >= reminders.MaxPerFolder || ofChat >= reminders.MaxPerChat {
		return out, refuse("there are %d reminders for this chat (at most %d) and %d of this group (at most %d): cancel some with reminder_cancel first",
			ofChat, reminders.MaxPerChat, ofFolder, reminders.MaxPerFolder)
	}
	r.CreatedBy, r.CreatedAt, r.UpdatedAt = r.UpdatedBy, c.Services.now(), c.Services.now()
	if err := rows.PutReminder(tx, &r); err != nil {
		return out, err
	}
	return newReminderOut(&r), c.activateReminder(ctx, tx, contextobjects.ReminderCreated, &r)
}
