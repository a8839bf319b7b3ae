package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"arizuko/gated/internal/running/runtime"
	"arizuko/migrations"
	"arizuko/pkg/cli"
	"arizuko/pkg/facts"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// warnOfGroups names the groups that strangers can reach and whose agents nothing confines, and those whose agents
// cannot run. It reads the database itself, so that gated need not run.
func warnOfGroups(ctx context.Context, cfg Config, defaults groupconfig.Config, out io.Writer) (err error) {
	if _, err := os.Stat(cfg.DBPath()); cfg.DB == "" && errors.Is(err, os.ErrNotExist) {
		return nil // not migrated yet
	}
	st, err := store.OpenReadOnly(ctx, cfg.Database(), migrations.Latest())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	routes, err := st.Routes(ctx)
	if err != nil {
		return err
	}
	groups, err := st.Groups(ctx)
	if err != nil {
		return err
	}
	unmeasured, err := unmeasuredBudgets(ctx, st.Reader, groups, time.Now())
	if err != nil {
		return err
	}
	for _, line := range slices.Concat(unconfined(routes, groups, defaults), unknownAgents(groups, defaults),
		unmeasured) {
		if _, err := fmt.Fprintln(out, "warning:", cli.PrintableLine(line)); err != nil {
			return err
		}
	}
	return warnOfTranscribers(ctx, cfg, groups, defaults, out)
}

// warnOfTranscribers names the groups whose command for transcripts cannot be run, such as that of a missing program.
func warnOfTranscribers(ctx context.Context, cfg Config, groups []msg.Group, defaults groupconfig.Config,
	out io.Writer) error {
	root, rootErr := filepath.Abs(cfg.Data)
	runtimes, err := cfg.runtimes(root, forward(string(cfg.MCPAddr)), environ())
	users, usersErr := cfg.users(root, slog.New(slog.DiscardHandler))
	if err := errors.Join(rootErr, err, usersErr); err != nil {
		return err
	}
	for _, g := range groups {
		c, err := groupconfig.Parse(g.Config)
		if own := c.Agent; err == nil && own.Command+own.Image != "" {
			agent := c.Over(defaults).Agent
			spec := runtime.Spec{
				User: users.Example(), Command: agent.Command, Image: agent.Image,
				Env: runtime.Environ(environ(), agent.Env),
			}
			checking, cancel := context.WithTimeout(ctx, checkWait)
			err := runtimes[agent.Runtime].Check(checking, spec)
			cancel()
			if err != nil {
				line := fmt.Sprintf("warning: the agent of group %s cannot be run as %s: %v", g.Folder, agent.Runtime, err)
				if _, err := fmt.Fprintln(out, cli.PrintableLine(line)); err != nil {
					return err
				}
			}
		}
		if err != nil || c.Transcribe == "" {
			continue
		}
		c = c.Over(defaults)
		spec := runtime.Spec{User: users.Example(), Command: c.Transcribe, Image: c.Agent.Image,
			Env: runtime.Environ(environ(), nil)}
		checking, cancel := context.WithTimeout(ctx, checkWait)
		err = runtimes[c.Agent.Runtime].Check(checking, spec)
		cancel()
		if err == nil {
			continue
		}
		line := fmt.Sprintf("group %s gets no transcripts of voice notes: its config.transcribe cannot be run as %s: %v", g.Folder, c.Agent.Runtime, err)
		if _, err := fmt.Fprintln(out, "warning:", cli.PrintableLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// measuredDays are the days in which an agent must have reported a dollar.
const measuredDays = 7

// unmeasuredBudgets returns a line for each group with a budget whose agents report no dollars.
func unmeasuredBudgets(ctx context.Context, st store.Reader, groups []msg.Group, now time.Time) (lines []string,
	err error) {
	for _, g := range groups {
		if c, err := groupconfig.Parse(g.Config); err != nil || c.Budget == (groupconfig.Budget{}) {
			continue
		}
		used, err := st.FolderSpend(ctx, g.Folder, now.AddDate(0, 0, -measuredDays).Format(time.DateOnly),
			now.Format(time.DateOnly))
		if err != nil {
			return nil, err
		}
		if used.CostUSD > 0 {
			continue
		}
		done, err := st.Turns(ctx, store.TurnList{Folder: g.Folder, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(done) > 0 && done[0].EndedAt > now.AddDate(0, 0, -measuredDays).UnixMilli() {
			lines = append(lines, fmt.Sprintf("the budget of group %s, in dollars, limits nothing: its agent has reported none in the last %d days",
				g.Folder, measuredDays))
		}
	}
	return lines, nil
}

// unknownAgents returns a line for each group that names an agent which AGENTS does not have.
func unknownAgents(groups []msg.Group, defaults groupconfig.Config) (lines []string) {
	for _, g := range groups {
		c, err := groupconfig.Parse(g.Config)
		if err != nil {
			continue // routd check says so
		}
		if err := defaults.Agents.Check(c.Agent.Name); err != nil {
			lines = append(lines,
				fmt.Sprintf("group %s cannot answer: %v; switch it by /agent in its chat or by `routd groups set %[1]s --agent NAME`", g.Folder, err))
		}
	}
	return lines
}

// unconfined returns a line for each group that strangers can reach while its agent runs as process.
func unconfined(routes []msg.Route, groups []msg.Group, defaults groupconfig.Config) (lines []string) {
	var l facts.List
	l.Unconfined(routes, groups, func(g msg.Group) groupconfig.Runtime {
		c, err := groupconfig.Parse(g.Config)
		if err != nil {
			return "" // with an invalid config no agent runs
		}
		return c.Over(defaults).Agent.Runtime
	})
	for _, f := range l.Found {
		lines = append(lines, f.Text+"; "+f.Fix)
	}
	return lines
}
