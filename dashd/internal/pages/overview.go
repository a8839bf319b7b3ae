package pages

import (
	"slices"
	"strings"

	"arizuko/dashd/internal/status"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/facts"
	"arizuko/pkg/msg"
)

// Overview is the state of the instance.
type Overview struct {
	status.Facts
	Steps   *Steps // nil once a chat of a platform was answered
	Down    int    // daemons that are not healthy
	Pending int    // requests of chats that wait for an operator
	// Attention lists problems, then warnings; Unlisted is how many more there are.
	Attention []facts.Fact
	Unlisted  int
	Failed    []*msg.Turn // the newest of the last day
	Minutes   Chart       // of the messages of the last hour
	Titles    Titles      // of the chats
}

// Routes are the lines of the report on routes and groups, which routd has in its detail: rows that match nothing,
// groups that strangers reach.
func (o Overview) Routes() []string {
	for _, d := range o.Daemons {
		if d.Name == "routd" && d.Detail != "" {
			return strings.Split(d.Detail, "\n")
		}
	}
	return nil
}

// connection words the state of a daemon. One without a platform runs: there is nothing that it is connected to. The
// last report of one that hangs or was killed says nothing about it.
func connection(d status.Daemon, now int64) string {
	stored := daemonrows.Daemon{Name: d.Name, Connection: string(d.Connection), HeartbeatAt: d.HeartbeatAt}
	row := facts.Daemon{Daemon: stored}
	switch {
	case row.Silent(now), !d.OK && d.Connection == daemon.Connected, d.Connection == "":
		return "not answering"
	case d.Connection == daemon.Connected && slices.Contains(daemon.Core(), d.Name):
		return "running"
	}
	return string(d.Connection)
}

// does says which part of its daemon's work a process does.
func does(p status.Process) string {
	switch {
	case p.Daemon == "gated" && p.Works:
		return "decides, runs agents"
	case p.Daemon == "gated":
		return "runs agents"
	case p.Works:
		return "works"
	}
	return "stands by"
}

// lateRenewal, in ms, is above the 3 s after which a process renews its lease, and the time that the page may be old.
const lateRenewal = 6_000

// lease words how a process's lease is.
func lease(p status.Process) string {
	switch {
	case p.Left <= 0:
		return "ended " + duration(-p.Left) + " ago"
	case p.Quiet >= lateRenewal:
		return "not renewed for " + duration(p.Quiet)
	}
	return "renewed"
}
