package groupconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// DefaultAgent is what users call the agent of groups that name none. No agent of [Agents] has the name.
const DefaultAgent = "default"

const (
	maxAgents    = 50
	maxAgentName = 32 // bytes
)

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// Agents are the agents that groups may name, by name: a JSON object of objects with the fields of [Agent], without name.
type Agents map[string]Agent

// UnmarshalText reads the value of AGENTS. Its error names every mistake.
func (a *Agents) UnmarshalText(text []byte) error {
	*a = nil
	if len(strings.TrimSpace(string(text))) == 0 {
		return nil
	}
	r := &reader{}
	raw, ok := into[map[string]json.RawMessage](r, "", text, `a JSON object, as in {"codex":{"command":"exec codex-agent"}}`)
	if !ok {
		return r.err()
	}
	if len(raw) > maxAgents {
		r.problem("", "must have at most %d agents", maxAgents)
		return r.err()
	}
	all := Agents{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if err := checkAgentName(name); err != nil {
			r.problem("", "%v", err)
			continue
		}
		all[name] = r.agent(name, raw[name])
	}
	if err := r.err(); err != nil {
		return err
	}
	*a = all
	return nil
}

// agent reads one of Agents.
func (r *reader) agent(name string, raw json.RawMessage) (a Agent) {
	known := len(r.problems)
	a.read(r, name, raw)
	switch {
	case len(r.problems) > known:
	case a.Name != "":
		r.problem(name+".name", "is not set here: the agent's name is %s", name)
	case a.Command == "" && a.Image == "":
		r.problem(name, "needs a command or an image")
	case a.Image != "" && a.Runtime != "" && a.Runtime != Docker:
		r.problem(name+".image", "needs the runtime docker, not %s", a.Runtime)
	}
	return a
}

func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return r.problems
}

func checkAgentName(name string) error {
	switch {
	case name == DefaultAgent:
		return fmt.Errorf("%s is the agent of groups that name none: use another name", DefaultAgent)
	case len(name) > maxAgentName || !agentName.MatchString(name):
		return fmt.Errorf("%.80q is no name of an agent: want at most %d of a-z, 0-9, - and _, as in codex", name, maxAgentName)
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

// AgentTitle is what users call an agent: its name, or [DefaultAgent] for "".
func AgentTitle(name string) string {
	if name == "" {
		return DefaultAgent
	}
	return name
}

// namedAgent reads the name of an agent. The default one is "".
func namedAgent(to *string) field {
	return func(r *reader, path string, raw json.RawMessage) {
		name, ok := into[string](r, path, raw, "a text")
		if !ok || name == "" || name == DefaultAgent {
			return
		}
		if err := checkAgentName(name); err != nil {
			r.problem(path, "%v", err)
		}
		*to = name
	}
}
