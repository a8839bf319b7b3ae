package reminders

import (
	"context"
	"fmt"
	"time"

	"arizuko/gated/internal/redecided"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Redecide computes the next times of active reminders again, at most limit, and compares them with those that are
// stored. It reads and changes nothing.
func Redecide(ctx context.Context, st store.Reader, now int64, limit int) (check redecided.Check, err error) {
	check.What = "next times of reminders"
	for after := int64(0); limit > 0; {
		all, err := factrows.Reminders(ctx, st, factrows.ReminderList{After: after, Limit: min(realignPage, limit)})
		if err != nil || len(all) == 0 {
			return check, err
		}
		for _, r := range all {
			after = r.ID
			limit--
			redecide(&check, r, now)
		}
	}
	return check, nil
}

// redecide compares one reminder. Its stored slot is the first after the last look at it, which is past: so it is the
// first after now too, or has come and waits.
func redecide(check *redecided.Check, r *msg.Reminder, now int64) {
	if r.NextSlot == 0 {
		check.Leave("made by SQL, and not scheduled yet")
		return
	}
	at, err := next(r, min(now, r.NextSlot-1))
	shown := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
	switch {
	case err != nil:
		check.Differ(fmt.Sprintf("reminder %d of %s in %.80s: was next at %s, now it would end: %v", r.ID, r.Folder,
			r.ChatJID, shown(r.NextSlot), err))
	case at == 0:
		check.Differ(fmt.Sprintf("reminder %d of %s in %.80s: was next at %s, now never", r.ID, r.Folder, r.ChatJID,
			shown(r.NextSlot)))
	case at != r.NextSlot:
		check.Differ(fmt.Sprintf("reminder %d of %s in %.80s: was next at %s, now at %s", r.ID, r.Folder, r.ChatJID,
			shown(r.NextSlot), shown(at)))
	default:
		check.Same++
	}
}
