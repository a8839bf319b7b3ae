package reminders

import (
	"context"
	"fmt"
	"strings"
	"time"

	"arizuko/gated/internal/authority"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// origin is for whom a reminder fires.
func (s *Scheduler) origin(ctx context.Context, st store.Reader, r *msg.Reminder) (authority.Origin, error) {
	operators, err := st.Operators(ctx, s.cfg.Operators)
	return authority.OriginOf(&msg.Message{OnBehalfOf: r.Payer()}, operators), err
}

// members are the rights of the members of the reminder's group as they are for whom it fires, nil for no group.
func (s *Scheduler) members(ctx context.Context, r store.Reader, of *msg.Reminder) (*groupconfig.Members, error) {
	group, err := r.Group(ctx, of.Folder)
	if err != nil || group == nil {
		return nil, err
	}
	m, _ := groupconfig.ReadMembers(group.Config) // gated's log has the error once the group gets a message
	return factrows.MembersFor(ctx, r, &m, of.ChatJID, of.Payer())
}

// excluded says why a reminder ends whose sender may not use the group any more, "" if it goes on. Of those made before
// senders were kept, an agent counts as the sender.
func excluded(by authority.Origin, members *groupconfig.Members, r *msg.Reminder) string {
	if old := by.Sender == "" || strings.HasPrefix(by.Sender, "agent:") ||
		strings.HasPrefix(by.Sender, reminderSender); old {
		return ""
	}
	if by.May(authority.Use, members) != "" {
		return fmt.Sprintf("%s, who asked for it, may not use group %s any more, by its role ask", by.Sender, r.Folder)
	}
	return ""
}

// overRate decides about a prompt whose sender has no turn left in the group: one that fires once ends, one that
// repeats skips the slot. The chat gets one notice an hour. It reads the turns in the transaction that adds the next
// one.
func (s *Scheduler) overRate(tx *store.Tx, f *firing, now int64) (over bool, err error) {
	if f.Turn == nil || f.Slot == 0 {
		return false, nil
	}
	ctx := context.Background() // of a transaction, which is not left half done
	by, err := s.origin(ctx, tx.Reader, f.Reminder)
	if err != nil || !by.Pays(f.members) {
		return false, err
	}
	n, first, err := rows.PaidTurns(ctx, tx.Reader, f.Folder, by.Sender, now-authority.RateTime, f.members.Rate)
	if err != nil || n < f.members.Rate {
		return false, err
	}
	f.limited = true
	notified, err := rows.NotifiedOfLimit(ctx, tx.Reader, f.ChatJID, by.Sender, now-authority.RateTime)
	if err != nil || notified {
		return true, err
	}
	wait := max((time.Duration(first+authority.RateTime-now) * time.Millisecond).Round(time.Minute), time.Minute)
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: f.ChatJID, Direction: msg.Out, IsBot: true, Sender: "agent:" + f.Folder, Source: msg.SourceNotice,
		OnBehalfOf: by.Sender,
		Content: fmt.Sprintf("A task that a reminder was to start is not done: %s, who asked for it, "+
			"has had the %d answers an hour that this group gives each user. Ask again in %d min. "+
			"Further ones are left out without a message.",
			by.Sender, f.members.Rate, int(wait.Minutes())),
		Topic: f.Turn.Place, ThreadID: f.Turn.ThreadID, Timestamp: now, ReceivedAt: now,
		OutState: msg.OutStateOf(f.ChatJID),
	})
	return true, err
}
