package reminders

import (
	"context"
	"fmt"
	"time"

	"arizuko/pkg/store"
)

const (
	// maxOverdue is how long after its slot a reminder has fired, unless something is wrong.
	maxOverdue = 2 * time.Minute
	// maxReported is how many overdue reminders are named.
	maxReported = 3
	watchEvery  = 30 * time.Second
)

// Watch reports overdue reminders until ctx ends. It looks beside Run, which may be what hangs.
func (s *Scheduler) Watch(ctx context.Context) error {
	outage := store.NewOutage(s.log, "look for overdue reminders")
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		problems, err := s.overdue(ctx)
		if outage.Note(ctx, err) == nil {
			s.cfg.Report(problems)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// overdue names reminders that should have fired, for operators.
func (s *Scheduler) overdue(ctx context.Context) (problems []string, err error) {
	late, err := s.st.DueReminders(ctx, s.now()-maxOverdue.Milliseconds(), maxReported)
	for _, r := range late {
		wait := (time.Duration(s.now()-r.NextSlot) * time.Millisecond).Truncate(time.Minute)
		problems = append(problems, fmt.Sprintf("reminder %d of %s in %s is overdue for %s: the log says why; `gated reminders cancel %[1]d` ends it",
			r.ID, r.Folder, r.ChatJID, wait))
	}
	return problems, err
}
