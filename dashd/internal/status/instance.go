package status

import (
	"context"
	"maps"
	"slices"
	"strings"

	"arizuko/pkg/daemon"
	"arizuko/pkg/facts"
	"arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// maxListed is how many running and how many queued turns are listed.
const maxListed = 50

// Daemon is the report of a daemon, and whether it is healthy. Times are unix ms.
type Daemon struct {
	Name        string            `json:"name"`
	Connection  daemon.Connection `json:"connection"`
	OK          bool              `json:"ok"` // connected, with a recent heartbeat
	HeartbeatAt int64             `json:"heartbeat_at"`

	// For operators; not part of a report, which goes to chats.
	Version     string `json:"-"`
	Detail      string `json:"-"`
	LastEventAt int64  `json:"-"` // of its platform, 0 for none
	LastProbeAt int64  `json:"-"` // when its connection last worked, 0 for never

	silent  bool   // it has ended without reporting that
	trouble string // in words for anyone
}

// Daemons returns every daemon that has run, sorted by name.
func (s *Status) Daemons(ctx context.Context) ([]Daemon, error) {
	now := s.now()
	known, err := s.known(ctx, now)
	return daemons(known, now), err
}

func daemons(known facts.Daemons, now int64) []Daemon {
	all := make([]Daemon, 0, len(known)) // an empty list in JSON, never null
	for _, name := range slices.Sorted(maps.Keys(known)) {
		d := known[name]
		trouble := d.Trouble(now)
		all = append(all, Daemon{
			Name: name, Connection: d.State(), OK: trouble == "", HeartbeatAt: d.HeartbeatAt, Version: d.Version,
			Detail: d.Details(), LastEventAt: d.LastEventAt, LastProbeAt: d.LastProbeAt,
			silent: strings.HasPrefix(trouble, facts.Silent), trouble: trouble,
		})
	}
	return all
}

// known reads the rows of the daemons, and asks those that run.
func (s *Status) known(ctx context.Context, now int64) (facts.Daemons, error) {
	all, err := facts.ReadDaemons(ctx, s.Store.Reader)
	return all.Ask(ctx, s.Base, now), err
}

// Runs reports whether a daemon runs, whatever the state of its platform is.
func (s *Status) Runs(ctx context.Context, name string) (bool, error) {
	all, err := facts.ReadDaemons(ctx, s.Store.Reader)
	return all.Runs(name, s.now()), err
}

// Facts is the state of the instance, for operators: it names chats and their problems.
type Facts struct {
	Now          int64 // unix ms
	Daemons      []Daemon
	Machines     []Process   // those that share the database; nil if there is one machine
	Running      []*msg.Turn // oldest first, at most 50
	RunningCount int
	Queued       []*msg.Turn // the same of those in the queue
	QueuedCount  int
	Inbound      rows.Waiting // rows without a decision
	Outbound     rows.Waiting // rows that are not delivered
}

// Instance gathers the facts for the overview.
func (s *Status) Instance(ctx context.Context) (f Facts, err error) {
	f.Now = s.now()
	if f.Daemons, err = s.Daemons(ctx); err != nil {
		return f, err
	}
	if f.Machines, err = s.machines(ctx); err != nil {
		return f, err
	}
	if f.Running, f.RunningCount, err = rows.OldestTurns(ctx, s.Store.Reader, msg.TurnRunning,
		maxListed); err != nil {
		return f, err
	}
	if f.Queued, f.QueuedCount, err = rows.OldestTurns(ctx, s.Store.Reader, msg.TurnQueued, maxListed); err != nil {
		return f, err
	}
	if f.Inbound, err = rows.Undecided(ctx, s.Store.Reader, "", 0); err != nil {
		return f, err
	}
	f.Outbound, err = rows.Unsent(ctx, s.Store.Reader, "", 0)
	return f, err
}

// report is the part of the facts that any caller may see: numbers and daemons only.
func (f Facts) report() Report {
	return Report{Text: f.text(), Waiting: f.Inbound.Rows, Daemons: f.Daemons}
}
