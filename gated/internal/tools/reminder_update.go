package tools

import (
	"context"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/timed/reminders"
	"arizuko/pkg/store"
)

type reminderUpdateIn struct {
	ID       int64   `json:"id" jsonschema:"the reminder's id"`
	Kind     string  `json:"kind,omitempty" jsonschema:"text or prompt; left out: as it is, and so for all that follow"`
	Body     string  `json:"body,omitempty" jsonschema:"the text, or the task"`
	DueAt    string  `json:"due_at,omitempty" jsonschema:"when it fires, once; it does not repeat then"`
	Cron     string  `json:"cron,omitempty" jsonschema:"when it fires, again and again"`
	TimeZone string  `json:"time_zone,omitempty" jsonschema:"of cron, and of a due_at without an offset"`
	Missed   string  `json:"missed,omitempty" jsonschema:"one or skip"`
	Topic    *string `json:"topic,omitempty" jsonschema:"the topic in which a prompt runs"`
}

func reminderUpdate() Tool {
	bounds := reminderBounds()
	bounds["id"] = Number(1, maxID)
	return define(Tool{
		Name: "reminder_update", Title: "Change a reminder", Kind: Sets,
		Description: "Changes an active reminder of your group: what it says, or when it fires. Use it when a user wants to move or reword one; take the id from reminder_list.",
		Bounds:      bounds,
	}, func(ctx context.Context, c *Caller, in reminderUpdateIn) (out reminderOut, err error) {
		spec := reminders.Spec{Kind: in.Kind, Body: c.markdown(in.Body), DueAt: in.DueAt, Cron: in.Cron,
			TimeZone: in.TimeZone, Missed: in.Missed}
		out, err = once(ctx, c, in, func(tx *store.Tx) (out reminderOut, err error) {
			r, err := c.ownReminder(ctx, tx.Reader, in.ID)
			if err != nil {
				return out, err
			}
			if in.Topic != nil {
				if r.Topic, err = reminderTopic(c.Turn, in.Topic); err != nil {
					return out, err
				}
			}
			if err := c.plan(ctx, tx, r, spec); err != nil {
				return out, err
			}
			r.UpdatedAt = c.Services.now()
			if err := rows.UpdateReminder(tx, r); err != nil {
				return out, err
			}
			return newReminderOut(r), c.activateReminder(ctx, tx, contextobjects.ReminderUpdated, r)
		})
		return out, c.planned(ctx, err)
	})
}
