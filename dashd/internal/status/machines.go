package status

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
)

// Process is a process of those that share a database on several machines.
type Process struct {
	Daemon, Place, Addr, Version string

	Works bool   // it has the lease of its daemon; every gated runs agents without it
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
	slices.SortStableFunc(rows, func(a, b daemonrows.Process) int { // of a daemon first the one that holds its lease
		return cmp.Or(strings.Compare(a.Daemon, b.Daemon), strings.Compare(b.Holds, a.Holds),
			strings.Compare(a.Place, b.Place))
	})
	for _, row := range rows {
		p := Process{
			Daemon: row.Daemon, Place: row.Place, Addr: row.Addr, Version: row.Version, Works: row.Holds != "",
			Since: cmp.Or(row.Held, row.Since), Left: row.Until - row.Now, Quiet: row.Now - row.Renewed(), Note: row.Detail,
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
