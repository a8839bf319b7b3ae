package groupconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// DefaultAgent is users' name for the agent of groups that name none. No agent of [Agents] has the name.
const DefaultAgent = "default"

const (
	maxAgents    = 50
	maxAgentName = 32 // bytes
)

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// Agents are the agents that groups may name, by name: a JSON object of objects with the fields of [Agent], without
// name.
type Agents map[string]Agent

// UnmarshalText reads the value of AGENTS. Its error names every mistake.
func (a *Agents) UnmarshalText(text []byte) error {
	*a = nil
	if len(strings.TrimSpace(string(text))) == 0 {
		return nil
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(text, &raw) != nil || raw == nil {
		return Problems{`must be a JSON object, as in {"codex":{"command":"exec codex-agent"}}`}
	}
	if len(raw) > maxAgents {
		return Problems{fmt.Sprintf("must have at most %d agents", maxAgents)}
	}
	all, problems := Agents{}, Problems(nil)
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if err := checkAgentName(name); err != nil {
			problems = append(problems, err.Error())
			continue
		}
		r := newReader(name)
		c := r.parse(fmt.Appendf(nil, `{"agent":%s}`, raw[name]))
		if len(r.problems) == 0 && c.Agent.Command == "" && c.Agent.Image == "" {
			r.problem("agent", "needs a command or an image")
		}
		all[name] = c.Agent
		problems = append(problems, r.problems...)
	}
	if len(problems) > 0 {
		return problems
	}
	*a = all
	return nil
}

func checkAgentName(name string) error {
	switch {
	case name == DefaultAgent:
		return fmt.Errorf("%s is the agent of groups that name none: use another name", DefaultAgent)
	case len(name) > maxAgentName || !agentName.MatchString(name):
		return fmt.Errorf("%.80q is no name of an agent: want at most %d of a-z, 0-9, - and _, as in codex", name,
			maxAgentName)
	}
	return nil
}

// Names are the names of all agents, the default one first.
func (a Agents) Names() []string {
	return append([]string{DefaultAgent}, slices.Sorted(maps.Keys(a))...)
}

// Check returns an error if a group names an agent that is not there.
func (a Agents) Check(name string) error {
	if _, ok := a[name]; ok || name == "" {
		return nil
	}
	return fmt.Errorf("agent.name: there is no agent %q; AGENTS has: %s", name, strings.Join(a.Names(), ", "))
}

// AgentTitle is users' name for an agent: its own, or [DefaultAgent] for "".
func AgentTitle(name string) string {
	if name == "" {
		return DefaultAgent
	}
	return name
}
