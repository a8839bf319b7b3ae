package agents

import (
	"fmt"
	"sync"
	"time"
)

// machine is whether agents can be started on this machine. The failures of agents
// do not count.
type machine struct {
	mu       sync.Mutex
	problem  string // "" while they can
	since    int64  // unix ms
	failures int    // one after another
}

func (m *machine) failed(problem string, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures++; m.failures == 1 {
		m.since = now
	}
	m.problem = problem
}

// works records that an agent was started.
func (m *machine) works() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problem, m.failures = "", 0
}

func (m *machine) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failures
}

// Problem is why no agent can be started on this machine, in words; "" if agents
// can.
func (m *Manager) Problem() string {
	m.machine.mu.Lock()
	defer m.machine.mu.Unlock()
	if m.machine.problem == "" {
		return ""
	}
	since := time.UnixMilli(m.machine.since).Format(time.DateTime)
	return fmt.Sprintf("agents cannot be started since %s, their messages wait: %s", since, m.machine.problem)
}
