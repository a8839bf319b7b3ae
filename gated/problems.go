package main

import (
	"strings"

	"arizuko/pkg/daemon"
)

// problems shows operators what keeps messages from being answered: in /readyz and, about agents, in
// gated's row of daemons, which the dashboard shows.
type problems struct {
	ready     *daemon.Readiness
	heartbeat *daemon.Heartbeat
}

// ofAgents replaces what keeps agents from being started. It is called by one goroutine at a time.
func (p *problems) ofAgents(problems []string) {
	p.ready.Note("agents", problems...)
	state := daemon.Connected
	if len(problems) > 0 {
		state = daemon.Degraded
	}
	p.heartbeat.Report(state, strings.Join(problems, "; "))
}

// ofMessages replaces what messages wait for: other daemons, whose own rows say more.
func (p *problems) ofMessages(waits []string) { p.ready.Note("messages", waits...) }

// ofReminders replaces the reminders that are overdue.
func (p *problems) ofReminders(overdue []string) { p.ready.Note("reminders", overdue...) }
