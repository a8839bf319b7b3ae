package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/store"
)

// Process is a process of those that share a database on several machines.
type Process struct {
	Daemon, Place, Addr, Version string

	Works bool   // it has the lease of its daemon; every gated runs agents without it
	Since int64  // unix ms by the database's clock: since when it has the lease; without one, when it began
	Left  int64  // ms until its lease ends, by the database's clock; 0 or less: another process may take over
	Quiet int64  // ms since it last renewed its lease, by the database's clock
	Bad   bool   // its connection is not in order, or its lease has ended
	Note  string // what it reports, for operators
}

// machines returns the processes, those that work first, if they are on several machines, and what to do where none works.
func (s *Status) machines(ctx context.Context, daemons []Daemon, now int64) (all []Process, unheld []string, err error) {
	rows, err := s.cfg.Store.Processes(ctx)
	if err != nil || len(rows) == 0 {
		return nil, nil, err
	}
	unheld = notHeld(rows, daemons, now)
	if len(places(rows, "")) < 2 {
		return nil, unheld, nil
	}
	for _, row := range rows {
		p := Process{
			Daemon: row.Daemon, Place: row.Place, Addr: row.Addr, Version: row.Version, Works: row.Holds != "", Since: cmp.Or(row.Held, row.Since),
			Left: row.Until - row.Now, Quiet: row.Now - row.Renewed(), Note: row.Detail,
		}
		if row.Daemon == "routd" {
			p.Note = "" // what routd says of its table has a place of its own
		}
		p.Bad = p.Left <= 0 || !slices.Contains([]daemon.Connection{"", daemon.Connected, daemon.Connecting}, daemon.Connection(row.Connection))
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b Process) int {
		return cmp.Or(strings.Compare(a.Daemon, b.Daemon), order(b.Works, a.Works), strings.Compare(a.Place, b.Place))
	})
	return all, unheld, nil
}

// order is that of two conditions: what holds comes last.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// places are those of a daemon's processes, "" for all daemons, sorted.
func places(rows []store.Process, name string) (all []string) {
	for _, row := range rows {
		if name == "" || row.Daemon == name {
			all = append(all, row.Place)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// notHeld says of each daemon that has ended without a successor which process to look at.
func notHeld(rows []store.Process, daemons []Daemon, now int64) (lines []string) {
	for _, d := range daemons {
		if !d.silent(now) {
			continue
		}
		holder := slices.IndexFunc(rows, func(p store.Process) bool { return p.Daemon == d.Name && p.Holds != "" })
		on := strings.Join(places(rows, d.Name), ", ")
		switch {
		case holder >= 0 && rows[holder].Until > rows[holder].Now:
			lines = append(lines, fmt.Sprintf("%s on %s renews its lease and reports nothing: look at its log.", d.Name, rows[holder].Place))
		case holder >= 0:
			ended := span(time.Duration(rows[holder].Now-rows[holder].Until) * time.Millisecond)
			lines = append(lines, fmt.Sprintf("%s: the lease of the process on %s ended %s ago, and no other took over: look at its log there, or start %s on another machine.",
				d.Name, rows[holder].Place, ended, d.Name))
		case on != "":
			lines = append(lines, fmt.Sprintf("%s: no process has the lease; those on %s should take it within seconds: look at their logs.", d.Name, on))
		default:
			lines = append(lines, fmt.Sprintf("%s runs on no machine: start it on one of those that others run on: %s.", d.Name, strings.Join(places(rows, ""), ", ")))
		}
	}
	return lines
}

// addOthers adds what is wrong with other processes of the daemon than the one whose row it is: of gated, each runs agents.
func (d *Daemon) addOthers(processes []store.Process) {
	for _, p := range processes {
		if p.Daemon != d.Name || p.Holds != "" || daemon.Connection(p.Connection) != daemon.Degraded {
			continue
		}
		if d.Connection != daemon.Degraded {
			d.Detail = ""
		}
		if d.Connection == daemon.Connected {
			d.Connection = daemon.Degraded
		}
		note := "on " + p.Place + ": " + p.Detail
		if !strings.Contains(d.Detail, note) {
			d.Detail = strings.TrimPrefix(d.Detail+"; "+note, "; ")
		}
	}
}
