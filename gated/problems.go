package main

import (
	"strings"

	"arizuko/pkg/daemon"
)

// problems shows operators why messages are not answered: in /readyz and, about agents, in
// gated's row of daemons, which the dashboard shows.
type problems struct {
	ready     *daemon.Readiness
	heartbeat *daemon.Heartbeat
}

// ofAgents replaces the reasons why agents are not started. It is called by one goroutine at a time.
func (p *problems) ofAgents(problems []string) {
	p.ready.Note("agents", problems...)
	state := daemon.Connected
	if len(problems) > 0 {
		state = daemon.Degraded
	}
	p.heartbeat.Report(state, strings.Join(problems, "; "))
}

// ofMessages replaces the daemons that messages wait for, whose own rows say more.
func (p *problems) ofMessages(waits []string) { p.ready.Note("messages", waits...) }

// ofReminders replaces the reminders that are overdue.
func (p *problems) ofReminders(overdue []string) { p.ready.Note("reminders", overdue...) }
