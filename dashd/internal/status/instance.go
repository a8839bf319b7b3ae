package status

import (
	"cmp"
	"context"
	"slices"
	"strings"

	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/facts"
	"arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// maxListed is how many running and how many queued turns are listed.
const maxListed = 50

// Daemons reads the rows of all daemons that have run, and asks those that run.
func (s *Status) Daemons(ctx context.Context) (facts.Daemons, error) {
	all, err := facts.ReadDaemons(ctx, s.Store.Reader)
	return all.Ask(ctx, s.Base, s.now()), err
}

// Runs reports whether a daemon runs, whatever the state of its platform is.
func (s *Status) Runs(ctx context.Context, name string) (bool, error) {
	all, err := facts.ReadDaemons(ctx, s.Store.Reader)
	return all.Runs(name, s.now()), err
}

// Facts is the state of the instance, for operators: it names chats and their problems.
type Facts struct {
	Now          int64 // unix ms
	Daemons      facts.Daemons
	Machines     []daemonrows.Process // the processes on several machines; nil if there is one machine
	Running      []*msg.Turn          // oldest first, at most 50
	RunningCount int
	Queued       []*msg.Turn // the same of those in the queue
	QueuedCount  int
	Inbound      rows.Waiting // rows without a decision
	Outbound     rows.Waiting // rows that are not delivered
}

// Instance gathers the facts for the overview.
func (s *Status) Instance(ctx context.Context) (Facts, error) {
	f, r := Facts{Now: s.now()}, s.Store.Reader
	oldest := func(state msg.TurnState) ([]*msg.Turn, int, error) { return rows.OldestTurns(ctx, r, state, maxListed) }
	err := inOrder(
		func() (err error) { f.Daemons, err = s.Daemons(ctx); return err },
		func() (err error) { f.Machines, err = s.machines(ctx); return err },
		func() (err error) { f.Running, f.RunningCount, err = oldest(msg.TurnRunning); return err },
		func() (err error) { f.Queued, f.QueuedCount, err = oldest(msg.TurnQueued); return err },
		func() (err error) { f.Inbound, err = rows.Undecided(ctx, r, "", 0); return err },
		func() (err error) { f.Outbound, err = rows.Unsent(ctx, r, "", 0); return err },
	)
	return f, err
}

// report is the part of the facts that any caller may see: numbers and daemons only.
func (f Facts) report() Report {
	return Report{Text: f.text(), Waiting: f.Inbound.Rows, Daemons: reported(f.Daemons, f.Now)}
}

// machines returns the processes, those that work first, if they are on several machines.
func (s *Status) machines(ctx context.Context) ([]daemonrows.Process, error) {
	all, err := daemonrows.Processes(ctx, s.Store.Reader)
	if err != nil || !slices.ContainsFunc(all, func(p daemonrows.Process) bool { return p.Place != all[0].Place }) {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b daemonrows.Process) int { // of a daemon first those that hold leases
		return cmp.Or(strings.Compare(a.Daemon, b.Daemon), cmp.Compare(min(len(b.Holds), 1), min(len(a.Holds), 1)),
			strings.Compare(a.Place, b.Place))
	})
	return all, nil
}
