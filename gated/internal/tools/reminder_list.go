package tools

import (
	"cmp"
	"context"

	"arizuko/gated/internal/contextobjects"
	factrows "arizuko/pkg/facts/rows"
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
	}, func(ctx context.Context, c *Caller, in reminderListIn) (out reminderListOut, err error) {
		const pageRows = 50
		state := msg.ReminderState(cmp.Or(in.State, string(msg.ReminderActive)))
		list := factrows.ReminderList{ChatJID: c.Turn.ChatJID, State: state, After: in.After, Limit: pageRows + 1}
		if in.All {
			list.ChatJID, list.Folder = "", c.Turn.Folder
		}
		all, err := factrows.Reminders(ctx, c.Services.Store.Reader, list)
		if err != nil {
			return out, err
		}
		if out.More = len(all) > pageRows; out.More {
			all = all[:pageRows]
			out.Last = all[pageRows-1].ID
		}
		out.Reminders = []reminderOut{}
		var active []*msg.Reminder
		for _, r := range all {
			shown, err := c.shows(ctx, c.Services.Store.Reader, r.Folder, r.ChatJID)
			if err != nil {
				return out, err
			}
			if !shown { // of a group out of reach, or of a chat that the run may not read
				continue
			}
			out.Reminders = append(out.Reminders, newReminderOut(r))
			if state == msg.ReminderActive && len(active) < maxActivated {
				active = append(active, r)
			}
		}
		return out, activateListed(ctx, c, active, func(tx *store.Tx, r *msg.Reminder) error {
			return c.activateReminder(ctx, tx, contextobjects.ReminderListed, r)
		})
	})
}
