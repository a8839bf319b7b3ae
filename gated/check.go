package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"arizuko/gated/internal/running/agentuser"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/daemon"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/groupconfig"
)

// checkWait bounds the check of a runtime: an engine may hang.
const checkWait = 30 * time.Second

// choiceWait is the same for /agent, whose user waits.
const choiceWait = 10 * time.Second

// programs are the agents' programs, their runtimes and their users.
type programs struct {
	defaults groupconfig.Config
	runtimes map[groupconfig.Runtime]runtime.Runtime
	users    *agentuser.Users
}

// programs returns those of the configuration. tools is the address of the tools' listener, host:port.
func (c *Config) programs(tools string) (p programs, err error) {
	root, rootErr := filepath.Abs(c.Data)
	p.defaults, err = c.groupDefaults()
	return p, errors.Join(rootErr, err, p.open(c, root, tools, slog.New(slog.DiscardHandler)))
}

// open sets runtimes and users. root is the absolute path of the data folder.
func (p *programs) open(c *Config, root, tools string, log *slog.Logger) (err error) {
	p.runtimes, err = c.runtimes(root, tools, environ())
	var usersErr error
	if p.users, usersErr = c.users(root, log); usersErr != nil {
		usersErr = &daemon.ExitError{Code: daemon.ExitRefused, Err: usersErr}
	}
	return errors.Join(err, usersErr)
}

// check returns the reasons that keep gated from working, and prints how agents run and warnings.
func check(ctx context.Context, out io.Writer) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	if err := cfg.refuseLinks(); err != nil {
		return err
	}
	_, secretErr := cfg.Secret()
	p, err := cfg.programs(forward(string(cfg.MCPAddr)))
	if err = errors.Join(secretErr, err); err == nil {
		err = p.checkAgents(ctx)
	}
	if err != nil {
		return &daemon.ExitError{Code: daemon.ExitRefused, Err: err}
	}
	agent := groupconfig.Config{}.Over(p.defaults).Agent
	lines := []string{
		fmt.Sprintf("agents run as %s: %s", agent.Runtime, cmp.Or(agent.Command, agent.Image)),
		"user of the agents: " + p.users.Describe(),
		cfg.describeTools(),
	}
	if len(p.defaults.Agents) > 0 {
		lines = append(lines, "agents that groups may name: "+strings.Join(p.defaults.Agents.Names(), ", "))
	}
	if err := p.limitsProblem(); err != nil {
		lines = append(lines, fmt.Sprintf("agents run without all of their limits: %v", err))
	}
	for _, line := range cfg.LinkedFolders() {
		lines = append(lines, "warning: "+line)
	}
	if _, err := fmt.Fprintln(out, strings.Join(lines, "\n")); err != nil {
		return err
	}
	return p.warnOfGroups(ctx, cfg, out)
}

// checkAgents checks whether the default agent and those of AGENTS can be run.
func (p *programs) checkAgents(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	var all []error
	for _, name := range p.defaults.Agents.Names() {
		all = append(all, p.checkAgent(ctx, name))
	}
	return errors.Join(all...)
}

// checkAgent checks whether an agent can be run, the default one or one of AGENTS.
func (p *programs) checkAgent(ctx context.Context, name string) error {
	var c groupconfig.Config
	what := "agents"
	if name != groupconfig.DefaultAgent {
		c.Agent.Name, what = name, "agent "+name+" of AGENTS"
	}
	agent := c.Over(p.defaults).Agent
	if err := p.check(ctx, agent); err != nil {
		return fmt.Errorf("%s cannot be run as %s: %w", what, agent.Runtime, err)
	}
	return nil
}

func (p *programs) check(ctx context.Context, agent groupconfig.Agent) error {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	return p.runtimes[agent.Runtime].Check(ctx, runtime.Spec{User: p.users.Example(), Command: agent.Command,
		Image: agent.Image, Env: runtime.Environ(environ(), agent.Env)})
}

// checkChoice checks whether the agent that a group is to have can be run.
func (g *gated) checkChoice(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, choiceWait)
	defer cancel()
	return g.programs.checkAgent(ctx, name)
}

// limitsProblem is why agents with the default settings do not have all of their limits.
func (p *programs) limitsProblem() error {
	sandbox, ok := p.runtimes[p.defaults.Agent.Runtime].(runtime.Sandbox)
	if !ok {
		return nil // docker keeps them, and processes have none
	}
	return sandbox.CheckLimits(p.defaults.Limits)
}

// tryAgents logs problems at start that the first message would meet. Gated starts
// in any case: an engine may come up later.
func (g *gated) tryAgents(ctx context.Context) error {
	name := g.programs.defaults.Agent.Runtime
	g.Log.Info("agents run", "runtime", name, "user", g.programs.users.Describe())
	if url := g.cfg.toolsURLs(g.tools.addr())(name); url != "" {
		g.Log.Info("agents have tools", "url", url)
	} else {
		g.Log.Warn("agents have no tools", "reason", g.cfg.describeTools())
	}
	if err := g.programs.checkAgents(ctx); err != nil && ctx.Err() == nil {
		g.Log.Error("agent check failed", "err", err)
	}
	if err := g.programs.limitsProblem(); err != nil {
		g.Log.Warn("agents run without all of their limits", "err", err)
	}
	return nil
}

// refuseLinks refuses a data folder of another user with links that a gated of root would follow.
func (c *Config) refuseLinks() error {
	if err := dataowner.RefuseLinks(c.Data); err != nil {
		return &daemon.ExitError{Code: daemon.ExitRefused, Err: err}
	}
	return nil
}
