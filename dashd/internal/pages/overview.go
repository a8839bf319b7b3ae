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
	// Attention lists problems, then warnings; Further are those that are folded.
	Attention, Further []facts.Fact

	Failed  []*msg.Turn // the newest of the last day
	Minutes Chart       // of the messages of the last hour
	Titles  Titles      // of the chats
}

// Routes are the lines of the report on routes and groups, which routd has in its detail: rows that match nothing,
// groups that strangers reach.
func (o Overview) Routes() []string {
	if d := o.Daemons["routd"]; d != nil && d.Details() != "" {
		return strings.Split(d.Details(), "\n")
	}
	return nil
}

// connection words the state of a daemon. One without a platform runs: there is nothing that it is connected to. The
// last report of one that hangs or was killed says nothing about it.
func connection(d *facts.Daemon, now int64) string {
	switch state := d.State(); {
	case d.Silent(now), d.Trouble(now) != "" && state == daemon.Connected, state == "":
		return "not answering"
	case state == daemon.Connected && slices.Contains(daemon.Core(), d.Name):
		return "running"
	default:
		return string(state)
	}
}

// does says which part of its daemon's work a process does: every gated runs agents.
func does(p daemonrows.Process) string {
	switch works := p.Holds != ""; {
	case p.Daemon == "gated" && works:
		return "decides, runs agents"
	case p.Daemon == "gated":
		return "runs agents"
	case works:
		return "works"
	}
	return "stands by"
}

// unwell reports whether a process's connection is not in order, or its lease has ended.
func unwell(p daemonrows.Process) bool {
	return p.Until <= p.Now || !slices.Contains([]daemon.Connection{"", daemon.Connected, daemon.Connecting},
		daemon.Connection(p.Connection))
}

// lateRenewal, in ms, is above the 3 s after which a process renews its lease, and the time that the page may be old.
const lateRenewal = 6_000

// lease words how a process's lease is.
func lease(p daemonrows.Process) string {
	switch quiet := p.Now - p.Renewed(); {
	case p.Until <= p.Now:
		return "ended " + duration(p.Now-p.Until) + " ago"
	case quiet >= lateRenewal:
		return "not renewed for " + duration(quiet)
	}
	return "renewed"
}
