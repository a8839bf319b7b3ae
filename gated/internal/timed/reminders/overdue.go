package reminders

import (
	"context"
	"time"

	"arizuko/pkg/facts"
	"arizuko/pkg/store"
)

// watchEvery is how often Watch looks.
const watchEvery = 30 * time.Second

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
	late, err := facts.OverdueReminders(ctx, s.st.Reader, s.now(), true)
	for _, f := range late {
		problems = append(problems, f.String())
	}
	return problems, err
}
