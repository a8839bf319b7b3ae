package doctor

import (
	"context"

	"arizuko/pkg/store"
)

// Rows examines what the rows say: which daemons run, and what waits, has failed or is late. It asks no daemon and starts no
// program, so that dashd can do it for its pages again and again. Findings are as those of Examine, problems first.
func Rows(ctx context.Context, cfg Config, st store.Reader) ([]Finding, error) {
	e := &examination{Config: cfg, now: cfg.Now().UnixMilli(), checked: map[string]bool{}, self: "dashd", st: &store.ReadOnly{Reader: st}}
	e.environment()
	e.report = Report{} // the environment is what the daemon has started with
	for _, check := range e.rowChecks() {
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	return e.result().Findings, nil
}

// rowChecks are the checks that read rows alone.
func (e *examination) rowChecks() []func(context.Context) error {
	return []func(context.Context) error{
		e.daemons, e.clock, e.undecided, e.parked, e.limited, e.turns, e.outbound, e.undelivered, e.files, e.failing, e.reminders,
	}
}
