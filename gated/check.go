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

// check returns what keeps gated from working.
func check(ctx context.Context, out io.Writer) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	if err := cfg.refuseLinks(); err != nil {
		return err
	}
	_, secretErr := cfg.Secret()
	defaults, defaultsErr := cfg.groupDefaults()
	root, rootErr := filepath.Abs(cfg.Data)
	runtimes, runtimesErr := cfg.runtimes(root, forward(string(cfg.MCPAddr)), environ())
	users, usersErr := cfg.users(root, slog.New(slog.DiscardHandler))
	err = errors.Join(secretErr, defaultsErr, rootErr, runtimesErr, usersErr)
	if err == nil {
		err = checkAgents(ctx, defaults, runtimes, users)
	}
	if err != nil {
		return &daemon.ExitError{Code: daemon.ExitRefused, Err: err}
	}
	agent := groupconfig.Config{}.Over(defaults).Agent
	_, err = fmt.Fprintf(out, "agents run as %s: %s\nuser of the agents: %s\n%s\n", agent.Runtime,
		cmp.Or(agent.Command, agent.Image), users.Describe(), cfg.describeTools())
	if err != nil {
		return err
	}
	if len(defaults.Agents) > 0 {
		if _, err := fmt.Fprintf(out, "agents that groups may name: %s\n",
			strings.Join(defaults.Agents.Names(), ", ")); err != nil {
			return err
		}
	}
	if err := limitsProblem(defaults, runtimes); err != nil {
		if _, err := fmt.Fprintf(out, "agents run without all of their limits: %v\n", err); err != nil {
			return err
		}
	}
	for _, line := range cfg.LinkedFolders() {
		if _, err := fmt.Fprintln(out, "warning:", line); err != nil {
			return err
		}
	}
	return warnOfGroups(ctx, cfg, defaults, out)
}

// checkAgents checks whether the default agent and those of AGENTS can be run.
func checkAgents(ctx context.Context, defaults groupconfig.Config, runtimes map[groupconfig.Runtime]runtime.Runtime,
	users *agentuser.Users) error {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	var all []error
	for _, name := range defaults.Agents.Names() {
		all = append(all, checkAgent(ctx, name, defaults, runtimes, users))
	}
	return errors.Join(all...)
}

// checkAgent checks whether an agent can be run, the default one or one of AGENTS.
func checkAgent(ctx context.Context, name string, defaults groupconfig.Config,
	runtimes map[groupconfig.Runtime]runtime.Runtime, users *agentuser.Users) error {
	var c groupconfig.Config
	what := "agents"
	if name != groupconfig.DefaultAgent {
		c.Agent.Name, what = name, "agent "+name+" of AGENTS"
	}
	agent := c.Over(defaults).Agent
	spec := runtime.Spec{User: users.Example(), Command: agent.Command, Image: agent.Image,
		Env: runtime.Environ(environ(), agent.Env)}
	if err := runtimes[agent.Runtime].Check(ctx, spec); err != nil {
		return fmt.Errorf("%s cannot be run as %s: %w", what, agent.Runtime, err)
	}
	return nil
}

// checkChoice checks whether the agent that a group is to have can be run.
func (g *gated) checkChoice(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, choiceWait)
	defer cancel()
	return checkAgent(ctx, name, g.defaults, g.runtimes, g.users)
}

// limitsProblem is why agents with the default settings do not have all of their limits.
func limitsProblem(defaults groupconfig.Config, runtimes map[groupconfig.Runtime]runtime.Runtime) error {
	sandbox, ok := runtimes[defaults.Agent.Runtime].(runtime.Sandbox)
	if !ok {
		return nil // docker keeps them, and processes have none
	}
	return sandbox.CheckLimits(defaults.Limits)
}

// tryAgents logs at start what else the first message would find. Gated starts
// in any case: an engine may come up later.
func (g *gated) tryAgents(ctx context.Context) error {
	g.Log.Info("agents run", "runtime", g.defaults.Agent.Runtime, "user", g.users.Describe())
	if url := g.cfg.toolsURLs(g.tools.addr())(g.defaults.Agent.Runtime); url != "" {
		g.Log.Info("agents have tools", "url", url)
	} else {
		g.Log.Warn("agents have no tools", "reason", g.cfg.describeTools())
	}
	if err := checkAgents(ctx, g.defaults, g.runtimes, g.users); err != nil && ctx.Err() == nil {
		g.Log.Error("agent check failed", "err", err)
	}
	if err := limitsProblem(g.defaults, g.runtimes); err != nil {
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
