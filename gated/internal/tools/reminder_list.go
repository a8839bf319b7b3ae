package tools

import (
	"context"

	"arizuko/gated/internal/contextobjects"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxActivated is how many of a list's entries become active context objects, which a chat has few of.
const maxActivated = 20

type reminderListIn struct {
	State string `json:"state,omitempty" jsonschema:"active (the default), done or cancelled"`
	All   bool   `json:"all,omitempty" jsonschema:"those of your group in all its chats; those in direct messages are shown only there, unless the group is configured to show them"`
	After int64  `json:"after,omitempty" jsonschema:"only those with a higher id: last of the page before"`
}

type reminderListOut struct {
	Reminders []reminderOut `json:"reminders" jsonschema:"by id"`
	More      bool          `json:"more" jsonschema:"there are further ones: ask again with after"`
	Last      int64         `json:"last,omitempty" jsonschema:"the value of after for the next page"`
}

func reminderList() Tool {
	return define(Tool{
		Name: "reminder_list", Title: "List reminders", Kind: Lists,
		Description: "Lists the reminders of your group for this chat, or for all its chats. Use it before you change or cancel one, and when a user asks what is planned.",
		Bounds: map[string]Bound{
			"state": OneOf(string(msg.ReminderActive), string(msg.ReminderDone), string(msg.ReminderCancelled)),
			"after": Number(0, maxID),
		},
		Example: `{}`,
	}, func(ctx context.Context, c *Caller, in reminderListIn) (out reminderListOut, err error) {
		const pageRows = 50
		state := msg.ReminderState(in.State)
		if state == "" {
			state = msg.ReminderActive
		}
		var all []*msg.Reminder
		if in.All {
			all, err = c.Services.Store.Reminders(ctx, store.ReminderList{Folder: c.Turn.Folder, State: state,
				After: in.After, Limit: pageRows + 1})
		} else {
			all, err = c.Services.Store.Reminders(ctx, store.ReminderList{ChatJID: c.Turn.ChatJID, State: state,
				After: in.After, Limit: pageRows + 1})
		}
		if err != nil {
			return out, err
		}
		if out.More = len(all) > pageRows; out.More {
			all = all[:pageRows]
			out.Last = all[pageRows-1].ID
		}
		if all, err = c.shownReminders(ctx, all); err != nil {
			return out, err
		}
		out.Reminders = []reminderOut{}
		for _, r := range all {
			out.Reminders = append(out.Reminders, newReminderOut(r))
		}
		if state != msg.ReminderActive || len(all) == 0 {
			return out, nil
		}
		return out, c.Services.Store.Write(ctx, func(tx *store.Tx) error {
			if err := c.checkOpen(ctx, tx.Reader); err != nil {
				return err
			}
			for _, r := range all[:min(len(all), maxActivated)] {
				if err := c.activateReminder(ctx, tx, contextobjects.ReminderListed, r); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// shownReminders leaves out reminders of groups out of reach, and of chats that the run may not read.
func (c *Caller) shownReminders(ctx context.Context, all []*msg.Reminder) (shown []*msg.Reminder, err error) {
	may := map[string]bool{}
	for _, r := range all {
		if _, known := may[r.ChatJID]; !known {
			if may[r.ChatJID], err = c.observes(ctx, c.Services.Store.Reader, r.ChatJID); err != nil {
				return nil, err
			}
		}
		open, err := c.reachesFor(ctx, c.Services.Store.Reader, r.Folder)
		if err != nil {
			return nil, err
		}
		if may[r.ChatJID] && open {
			shown = append(shown, r)
		}
	}
	return shown, nil
}
