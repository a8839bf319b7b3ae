package doctor

import (
	"context"

	"arizuko/pkg/facts"
	"arizuko/pkg/store"
)

// Rows examines the rows alone: which daemons run, and whether anything waits, has failed or is late. It asks no daemon
// and starts no program, so that dashd can do it for its pages again and again. Findings are as those of Examine,
// problems first.
func Rows(ctx context.Context, cfg Config, st store.Reader) ([]facts.Fact, error) {
	e := newExamination(cfg)
	e.self, e.st = "dashd", &store.ReadOnly{Reader: st}
	if err := checkRows(ctx, e); err != nil {
		return nil, err
	}
	_, _ = fullDisk(e) // a disk that cannot be measured is no finding
	return e.result().Findings, nil
}

// checkRows are the checks that read rows alone.
func checkRows(ctx context.Context, e *examination) (err error) {
	e.in = facts.Instance{
		Rows: e.st.Reader, Now: e.now, Operators: e.env.Operators, MaxAgents: e.env.MaxAgents, HasToken: e.env.hasToken,
	}
	if e.in.Daemons, err = facts.ReadDaemons(ctx, e.st.Reader); err != nil {
		return err
	}
	if e.self != "" {
		e.in.Daemons.Ask(ctx, e.Base, e.now)
	}
	checkDaemons(e)
	stored, err := e.in.Stored(ctx)
	e.Add(stored...)
	return err
}
