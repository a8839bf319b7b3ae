package status

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
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

// Process is a process of those that share a database on several machines.
type Process struct {
	Daemon, Place, Addr, Version string

	Works bool   // it has the lease of its daemon, or of some chats; every gated runs agents without one
	Since int64  // unix ms by the database's clock: since when it has the lease; without one, when it began
	Left  int64  // ms until its lease ends, by the database's clock; 0 or less: another process may take over
	Quiet int64  // ms since it last renewed its lease, by the database's clock
	Bad   bool   // its connection is not in order, or its lease has ended
	Note  string // its own report, for operators
}

// machines returns the processes, those that work first, if they are on several machines.
func (s *Status) machines(ctx context.Context) (all []Process, err error) {
	rows, err := daemonrows.Processes(ctx, s.Store.Reader)
	if err != nil || !slices.ContainsFunc(rows, func(p daemonrows.Process) bool { return p.Place != rows[0].Place }) {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b daemonrows.Process) int { // of a daemon first those that hold leases
		return cmp.Or(strings.Compare(a.Daemon, b.Daemon), cmp.Compare(min(len(b.Holds), 1), min(len(a.Holds), 1)),
			strings.Compare(a.Place, b.Place))
	})
	for _, row := range rows {
		p := Process{
			Daemon: row.Daemon, Place: row.Place, Addr: row.Addr, Version: row.Version, Works: row.Holds != "",
			Since: cmp.Or(row.Held, row.Since), Left: row.Until - row.Now, Quiet: row.Now - row.Renewed(),
			Note: row.Detail,
		}
		if row.Daemon == "routd" {
			p.Note = "" // the state of routd's table is shown elsewhere
		}
		p.Bad = p.Left <= 0 || !slices.Contains([]daemon.Connection{"", daemon.Connected, daemon.Connecting},
			daemon.Connection(row.Connection))
		all = append(all, p)
	}
	return all, nil
}
