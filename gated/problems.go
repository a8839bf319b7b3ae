package main

import (
	"slices"
	"strings"
	"sync"

	"arizuko/pkg/daemon"
)

// problems shows operators what keeps messages from being answered: in /readyz and, about agents, in
// gated's row of daemons, which the dashboard shows.
type problems struct {
	ready     *daemon.Readiness
	heartbeat *daemon.Heartbeat

	mu                       sync.Mutex
	agents, waits, reminders []string
}

// ofAgents replaces what keeps agents from being started.
func (p *problems) ofAgents(problems []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agents = problems
	p.ready.Note(slices.Concat(p.agents, p.waits, p.reminders)...)
	state := daemon.Connected
	if len(problems) > 0 {
		state = daemon.Degraded
	}
	p.heartbeat.Report(state, strings.Join(problems, "; "))
}

// ofMessages replaces what messages wait for: other daemons, whose own rows say more.
func (p *problems) ofMessages(waits []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = waits
	p.ready.Note(slices.Concat(p.agents, p.waits, p.reminders)...)
}

// ofReminders replaces the reminders that are overdue.
func (p *problems) ofReminders(overdue []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reminders = overdue
	p.ready.Note(slices.Concat(p.agents, p.waits, p.reminders)...)
}
