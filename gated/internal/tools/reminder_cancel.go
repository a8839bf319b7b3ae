package tools

import (
	"context"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type reminderCancelIn struct {
	ID int64 `json:"id" jsonschema:"the reminder's id"`
}

func reminderCancel() Tool {
	return define(Tool{
		Name: "reminder_cancel", Title: "Cancel a reminder", Kind: Removes,
		Description: "Ends an active reminder of your group: it does not fire any more. Use it when a user wants no more reminders of something; take the id from reminder_list.",
		Bounds:      map[string]Bound{"id": Number(1, maxID)},
	}, func(ctx context.Context, c *Caller, in reminderCancelIn) (out reminderOut, err error) {
		return once(ctx, c, in, func(tx *store.Tx) (out reminderOut, err error) {
			r, err := c.ownReminder(ctx, tx.Reader, in.ID)
			if err != nil {
				return out, err
			}
			r.State, r.NextSlot = msg.ReminderCancelled, 0
			now := c.Services.now()
			if err := rows.EndReminder(tx, r.ID, msg.ReminderCancelled, c.origin.Sender, "", now); err != nil {
				return out, err
			}
			return newReminderOut(r), c.Services.Objects.SetReminderDue(tx, r.ChatJID, r.ID, 0, now)
		})
	})
}
