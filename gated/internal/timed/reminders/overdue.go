package reminders

import (
	"context"
	"time"

	"arizuko/pkg/facts"
	"arizuko/pkg/store"
)

// watchEvery is how often Watch looks.
const watchEvery = 30 * time.Second

// Watch reports overdue reminders until ctx ends. It looks beside Run, which may hang itself.
func (s *Scheduler) Watch(ctx context.Context) error {
	outage := store.NewOutage(s.log, "look for overdue reminders")
	return outage.Repeat(ctx, watchEvery, func(ctx context.Context) error {
		problems, err := s.overdue(ctx)
		if err == nil {
			s.cfg.Report(problems)
		}
		return err
	})
}

// overdue names reminders that should have fired, for operators.
func (s *Scheduler) overdue(ctx context.Context) (problems []string, err error) {
	late, err := facts.OverdueReminders(ctx, s.st.Reader, s.now(), true)
	for _, f := range late {
		problems = append(problems, f.String())
	}
	return problems, err
}
