package agents

import (
	"maps"
	"slices"
	"sync"

	"arizuko/pkg/facts"
)

// problems are the reasons why agents don't answer, for operators: the machine, and
// groups whose turns fail alike.
type problems struct {
	report func([]string) // receives all of them, in words, at each change

	mu       sync.Mutex
	machines map[string]machine // by runtime
	groups   map[string]string
}

// machine is a runtime that can start no agent on this machine.
type machine struct {
	problem  string
	since    int64 // unix ms
	failures int   // one after another
}

func newProblems(report func([]string)) *problems {
	if report == nil {
		report = func([]string) {}
	}
	return &problems{report: report, machines: map[string]machine{}, groups: map[string]string{}}
}

// machineFailed records that a runtime could start no agent, at the time now.
func (p *problems) machineFailed(runtime, problem string, now int64) {
	p.change(func() {
		m := p.machines[runtime]
		if m.failures++; m.failures == 1 {
			m.since = now
		}
		m.problem = problem
		p.machines[runtime] = m
	})
}

// machineWorks records that a runtime has started an agent.
func (p *problems) machineWorks(runtime string) {
	if p.machineFailures(runtime) > 0 {
		p.change(func() { delete(p.machines, runtime) })
	}
}

// machineFailures is how often a runtime has failed, one after another.
func (p *problems) machineFailures(runtime string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machines[runtime].failures
}

func (p *problems) groupFails(folder, problem string) {
	p.change(func() { p.groups[folder] = problem })
}

func (p *problems) groupWorks(folder string) { p.change(func() { delete(p.groups, folder) }) }

func (p *problems) change(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
	var all []string
	for _, runtime := range slices.Sorted(maps.Keys(p.machines)) {
		m := p.machines[runtime]
		all = append(all, facts.NoAgents(runtime, m.problem, m.since))
	}
	for _, folder := range slices.Sorted(maps.Keys(p.groups)) {
		all = append(all, facts.GroupFails(folder, p.groups[folder]))
	}
	p.report(all)
}
