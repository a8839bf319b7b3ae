package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/agentuser"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/config"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/store"
)

// AgentConfig is how agents are run unless their group sets otherwise.
type AgentConfig struct {
	AgentRuntime  string             `env:"AGENT_RUNTIME" envDefault:"process" doc:"how agents run: process, on this machine, or docker, in containers"`
	AgentSandbox  string             `env:"AGENT_SANDBOX" doc:"bwrap: bubblewrap confines the agents that run as process"`
	AgentCommand  string             `env:"AGENT_COMMAND" doc:"the agent, run by sh -c in its group's folder, not with docker; default: the demo agent beside this program"`
	Agents        groupconfig.Agents `env:"AGENTS" doc:"further agents that groups may name in agent.name, as JSON: {\"codex\":{\"command\":\"exec codex-agent\",\"env\":[\"OPENAI_API_KEY\"]}}; each takes command, image, runtime, model, env and settings as a group's agent does"`
	AgentUser     string             `env:"AGENT_USER" doc:"if gated is root: the user that runs all agents, by name or number; default: a number for each group, which owns the group's folder"`
	AgentReadable []string           `env:"AGENT_READABLE" doc:"with bwrap, or if gated is root: absolute paths that agents may read, besides the system's programs and this program's folder"`
	AgentImage    string             `env:"AGENT_IMAGE" doc:"with docker: the image, which must be present; its own program is the agent"`
	AgentNetwork  string             `env:"AGENT_NETWORK" envDefault:"bridge" doc:"with bwrap and docker: bridge, a network of the agent's own that reaches the outside world; ask lets out what rules and users allow, see docs/egress.md; none cuts agents off, from their model too; host shares this machine's; docker has further ones"`
	AgentMemory   groupconfig.Bytes  `env:"AGENT_MEMORY" envDefault:"2g" doc:"with bwrap and docker: memory of a run, swap included; 0 is no limit"`
	AgentCPUs     float64            `env:"AGENT_CPUS" envDefault:"1" doc:"with bwrap and docker: processors of a run; 0 is no limit"`
	AgentPIDs     int                `env:"AGENT_PIDS" envDefault:"512" doc:"with bwrap and docker: processes and threads of a run; 0 is no limit"`
	AgentDocker   string             `env:"AGENT_DOCKER" envDefault:"docker" doc:"with docker: its client, and arguments before the subcommand"`
	AgentEnv      []string           `env:"AGENT_ENV" doc:"names of variables that agents see besides PATH, HOME, LANG and TZ, such as API keys"`
}

func (c *AgentConfig) validateAgents() (all []error) {
	problem := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	switch {
	case c.AgentRuntime != "process" && c.AgentRuntime != "docker":
		problem("AGENT_RUNTIME: %q is neither process nor docker", c.AgentRuntime)
	case c.AgentSandbox != "" && c.AgentSandbox != "bwrap":
		problem("AGENT_SANDBOX: %q is not bwrap", c.AgentSandbox)
	case c.AgentSandbox != "" && c.AgentRuntime != "process":
		problem("AGENT_SANDBOX: is for AGENT_RUNTIME=process; docker confines agents itself")
	}
	if c.runtime() == groupconfig.Bwrap {
		if err := runtime.Network(c.AgentNetwork).Check(); err != nil {
			all = append(all, err)
		}
	}
	if c.AgentRuntime == "docker" && c.AgentImage == "" {
		problem("AGENT_IMAGE: AGENT_RUNTIME=docker needs the image of the agent")
	}
	if c.AgentNetwork == string(groupconfig.NetworkAsk) && c.runtime() == groupconfig.Process {
		problem("AGENT_NETWORK: ask needs a sandbox, since a process of this machine reaches whatever it likes: " +
			"set AGENT_SANDBOX=bwrap or AGENT_RUNTIME=docker")
	}
	for _, path := range c.AgentReadable {
		if !filepath.IsAbs(path) {
			problem("AGENT_READABLE: %q is not an absolute path", path)
		}
	}
	if _, err := c.agentUser(); err != nil {
		all = append(all, err)
	}
	for name, word := range map[string]string{"AGENT_IMAGE": c.AgentImage, "AGENT_NETWORK": c.AgentNetwork} {
		if strings.HasPrefix(word, "-") || strings.ContainsFunc(word, unicode.IsSpace) {
			problem("%s: %q must be one word", name, word)
		}
	}
	if c.AgentMemory < 0 || c.AgentCPUs < 0 || c.AgentPIDs < 0 {
		problem("AGENT_MEMORY, AGENT_CPUS, AGENT_PIDS: must not be negative")
	}
	for _, name := range c.AgentEnv {
		if err := groupconfig.CheckEnv(name); err != nil {
			problem("AGENT_ENV: %v", err)
		}
	}
	return all
}

// runtime is the default runtime of groups.
func (c *AgentConfig) runtime() groupconfig.Runtime {
	switch {
	case c.AgentRuntime == "docker":
		return groupconfig.Docker
	case c.AgentSandbox == "bwrap":
		return groupconfig.Bwrap
	}
	return groupconfig.Process
}

// groupDefaults are the defaults of groups. A restart does not fix its error.
func (c *Config) groupDefaults() (groupconfig.Config, error) {
	idle := groupconfig.Duration(c.AgentIdle)
	command, err := c.commandOrDemo()
	if c.runtime() == groupconfig.Docker {
		err = nil // groups may all have another runtime
	}
	return groupconfig.Config{
		AssistantName: c.AssistantName,
		Agents:        c.Agents,
		Agent: groupconfig.Agent{Runtime: c.runtime(), Command: command, Image: c.AgentImage, Env: c.AgentEnv,
			Network: groupconfig.Network(c.AgentNetwork)},
		Limits:   groupconfig.Limits{Memory: c.AgentMemory, CPUs: c.AgentCPUs, PIDs: c.AgentPIDs},
		Timeouts: groupconfig.Timeouts{Timeout: groupconfig.Duration(c.AgentTimeout), Idle: &idle},
	}, err
}

// agentUser is the user of AGENT_USER, zero if there is none or it is gated's own.
func (c *AgentConfig) agentUser() (runtime.User, error) {
	if c.AgentUser == "" {
		return runtime.User{}, nil
	}
	u, err := agentuser.Lookup(c.AgentUser)
	switch uid := os.Getuid(); {
	case err != nil:
		return u, fmt.Errorf("AGENT_USER: %w", err)
	case uid == 0:
		return u, nil
	case u.UID != uid:
		return u, fmt.Errorf("AGENT_USER: only root can run agents as %s, and gated runs as user %d: leave it out, "+
			"or run gated as root", c.AgentUser, uid)
	}
	return runtime.User{}, nil
}

// users say who runs agents. data is the absolute path of the data folder.
func (c *AgentConfig) users(data string, log *slog.Logger) (*agentuser.Users, error) {
	u, err := c.agentUser()
	if err != nil || u.IsZero() {
		return agentuser.New(data, u, log), err
	}
	var owner syscall.Stat_t
	if err := syscall.Stat(data, &owner); err == nil && int(owner.Uid) == u.UID {
		return nil, fmt.Errorf("AGENT_USER: %s owns the data folder %s, and could read the secret: name another user",
			c.AgentUser, data)
	}
	return agentuser.New(data, u, log), nil
}

// runtimes returns every runtime. data is the absolute path of the data folder, tools the
// address of the tools' listener, host:port.
func (c *AgentConfig) runtimes(data, tools string, environ []string) (map[groupconfig.Runtime]runtime.Runtime, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	temp := filepath.Join(data, "run", "tmp")
	readable := append(slices.Clone(c.AgentReadable), filepath.Dir(self))
	return map[groupconfig.Runtime]runtime.Runtime{
		groupconfig.Process: runtime.Process{Temp: temp, Readable: readable},
		groupconfig.Bwrap: runtime.Sandbox{Temp: temp, Data: data, Readable: readable,
			Network: runtime.Network(c.AgentNetwork), Forward: tools},
		groupconfig.Docker: runtime.Docker{
			Client: c.AgentDocker, Environ: environ, Instance: runtime.InstanceOf(data), Network: c.AgentNetwork,
		},
	}, nil
}

// noteAgent stores whether the demo agent answers: an empty web chat says so.
func (g *gated) noteAgent(ctx context.Context) error {
	demo := g.cfg.AgentCommand == "" && g.cfg.runtime() != groupconfig.Docker
	stored, err := factrows.DemoAgent(ctx, g.Store.Reader)
	if err != nil || stored == demo {
		return err
	}
	return g.Store.Write(ctx, func(tx *store.Tx) error { return rows.SetDemoAgent(tx, demo) })
}

// commandOrDemo is the agent's command line on this machine.
func (c *AgentConfig) commandOrDemo() (string, error) {
	if c.AgentCommand != "" {
		return c.AgentCommand, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	demo := filepath.Join(filepath.Dir(self), "demo")
	if _, err := os.Stat(demo); err != nil {
		return "", fmt.Errorf("AGENT_COMMAND is not set and the demo agent is not at %s: build it there or set "+
			"AGENT_COMMAND", demo)
	}
	return "exec " + quote(demo), nil
}

// quote quotes a path for the shell.
func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// agentSecrets are the secrets among the variables of AGENT_ENV. They are hidden in logs and answers.
func (c *AgentConfig) agentSecrets(environ []string) []string {
	return config.SecretValues(runtime.Environ(environ, c.AgentEnv))
}
