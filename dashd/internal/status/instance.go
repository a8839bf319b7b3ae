package status

import (
	"context"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxHeartbeatAge is the age of a heartbeat from which its daemon counts as gone.
	maxHeartbeatAge = 3 * daemon.HeartbeatInterval
	// maxListed is how many running and how many queued turns are listed.
	maxListed = 50
)

// Daemon is what a daemon reports, and whether it is healthy. Times are unix ms.
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
}

// silent reports whether the daemon has ended without reporting that.
func (d Daemon) silent(now int64) bool {
	return d.Connection != daemon.Stopped && now-d.HeartbeatAt >= maxHeartbeatAge.Milliseconds()
}

// Daemons returns every daemon that has run, sorted by name.
func (s *Status) Daemons(ctx context.Context) ([]Daemon, error) { return s.daemons(ctx, s.now()) }

func (s *Status) daemons(ctx context.Context, now int64) ([]Daemon, error) {
	rows, err := s.cfg.Store.Daemons(ctx)
	if err != nil {
		return nil, err
	}
	processes, err := s.cfg.Store.Processes(ctx)
	all := make([]Daemon, len(rows)) // an empty list in JSON, never null
	for i, row := range rows {
		d := Daemon{
			Name: row.Name, Connection: daemon.Connection(row.Connection), HeartbeatAt: row.HeartbeatAt,
			Version: row.Version, Detail: row.Detail, LastEventAt: row.LastEventAt, LastProbeAt: row.LastProbeAt,
		}
		d.addOthers(processes)
		d.OK = d.Connection == daemon.Connected && !d.silent(now)
		all[i] = d
	}
	return all, err
}

// Runs reports whether a daemon runs, whatever the state of its platform is.
func (s *Status) Runs(ctx context.Context, name string) (bool, error) {
	all, err := s.Daemons(ctx)
	for _, d := range all {
		if d.Name == name {
			return d.Connection != daemon.Stopped && !d.silent(s.now()), err
		}
	}
	return false, err
}

// Facts is the state of the instance, for operators: it names chats and what went wrong there.
type Facts struct {
	Now          int64 // unix ms
	Daemons      []Daemon
	Machines     []Process   // those that share the database; nil if there is one machine
	Unheld       []string    // what to do where no process works of those that do something alone
	Running      []*msg.Turn // oldest first, at most 50
	RunningCount int
	Queued       []*msg.Turn // the same of those in the queue
	QueuedCount  int
	Inbound      store.Waiting // rows without a decision
	Outbound     store.Waiting // rows that are not delivered
}

// Instance gathers the facts for the overview.
func (s *Status) Instance(ctx context.Context) (f Facts, err error) {
	f.Now = s.now()
	if f.Daemons, err = s.daemons(ctx, f.Now); err != nil {
		return f, err
	}
	if f.Machines, f.Unheld, err = s.machines(ctx, f.Daemons, f.Now); err != nil {
		return f, err
	}
	if f.Running, f.RunningCount, err = s.cfg.Store.RunningTurns(ctx, maxListed); err != nil {
		return f, err
	}
	if f.Queued, f.QueuedCount, err = s.cfg.Store.QueuedTurns(ctx, maxListed); err != nil {
		return f, err
	}
	if f.Inbound, err = s.cfg.Store.WaitingInbound(ctx); err != nil {
		return f, err
	}
	f.Outbound, err = s.cfg.Store.WaitingOutbound(ctx)
	return f, err
}

// report is what /status shows of the instance to any caller: numbers and daemons only.
func (f Facts) report() Report {
	return Report{Text: f.text(), Waiting: f.Inbound.Rows, Daemons: f.Daemons}
}

func ago(now, at int64) time.Duration {
	return max(0, time.Duration(now-at)*time.Millisecond)
}
