package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"arizuko/gated/internal/egress/secrets"
	"arizuko/pkg/cli"
	"arizuko/pkg/config"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// warnOfGroups names the groups that strangers can reach and whose agents nothing confines, and those whose agents
// cannot run. It reads the database itself, so that gated need not run.
func (p *programs) warnOfGroups(ctx context.Context, cfg Config, out io.Writer) error {
	if _, err := os.Stat(cfg.DBPath()); cfg.DB == "" && errors.Is(err, os.ErrNotExist) {
		return nil // not migrated yet
	}
	return cfg.read(ctx, func(st store.Reader) error {
		routes, err := st.Routes(ctx)
		if err != nil {
			return err
		}
		groups, err := st.Groups(ctx)
		if err != nil {
			return err
		}
		all := unconfined(routes, groups, p.defaults)
		set, namesErr := secrets.New(cfg.Data).Names()
		rules, rulesErr := egressrows.Rules(ctx, st)
		for _, r := range rules {
			if r.Secret != "" && !slices.Contains(set, r.Secret) {
				all = append(all, fmt.Sprintf("egress rule %d (%s) has no secret: set it with `gated secret set %s`",
					r.ID, r, r.Secret))
			}
		}
		if err := errors.Join(namesErr, rulesErr); err != nil {
			return err
		}
		for _, g := range groups {
			lines, err := p.warnings(ctx, st, g, time.Now())
			if err != nil {
				return err
			}
			all = append(all, lines...)
		}
		for _, line := range all {
			if _, err := fmt.Fprintln(out, "warning:", cli.PrintableLine(line)); err != nil {
				return err
			}
		}
		return nil
	})
}

// warnings returns lines about a group: it names an agent that AGENTS does not have, its budget limits nothing, or its
// own agent, or its command for transcripts, cannot be run, such as that of a missing program.
func (p *programs) warnings(ctx context.Context, st store.Reader, g msg.Group, now time.Time) (lines []string,
	err error) {
	c, err := groupconfig.Parse(g.Config)
	if err != nil {
		return nil, nil //nolint:nilerr // routd check says so
	}
	warn := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if err := p.defaults.Agents.Check(c.Agent.Name); err != nil {
		warn("group %s cannot answer: %v; switch it by /agent in its chat or by `routd groups set %[1]s --agent NAME`",
			g.Folder, err)
	}
	if c.Budget != (groupconfig.Budget{}) {
		unmeasured, err := answersForNothing(ctx, st, g.Folder, now)
		if err != nil {
			return nil, err
		}
		if unmeasured {
			warn("the budget of group %s, in dollars, limits nothing: its agent has reported none in the last %d days",
				g.Folder, measuredDays)
		}
	}
	own := c.Agent.Command+c.Agent.Image != ""
	c = c.Over(p.defaults)
	if own {
		if err := p.check(ctx, c.Agent); err != nil {
			warn("the agent of group %s cannot be run as %s: %v", g.Folder, c.Agent.Runtime, err)
		}
	}
	if c.Agent.Network == groupconfig.NetworkAsk && c.Agent.Runtime == groupconfig.Process {
		warn("the agent of group %s cannot be run: its agent.network is ask, which needs the runtime bwrap or docker",
			g.Folder)
	}
	if c.Agent.Secrets != nil && c.Agent.Network != groupconfig.NetworkAsk {
		warn("the agent of group %s gets no agent.secrets, since its agent.network is not ask", g.Folder)
	}
	for _, name := range c.Agent.Env {
		if config.SecretName(name) && c.Agent.Runtime != groupconfig.Process {
			warn("group %s gives its agent %s, which it can send anywhere; `gated secret set` and agent.secrets "+
				"give it a token that only works through the egress proxy", g.Folder, name)
		}
	}
	if c.Transcribe != "" {
		transcriber := groupconfig.Agent{Runtime: c.Agent.Runtime, Command: c.Transcribe, Image: c.Agent.Image}
		if err := p.check(ctx, transcriber); err != nil {
			warn("group %s gets no transcripts of voice notes: its config.transcribe cannot be run as %s: %v", g.Folder,
				c.Agent.Runtime, err)
		}
	}
	return lines, nil
}

// measuredDays are the days in which an agent must have reported a dollar.
const measuredDays = 7

// answersForNothing reports whether the agent of a group has answered lately, and reported no dollars.
func answersForNothing(ctx context.Context, st store.Reader, folder string, now time.Time) (bool, error) {
	since := now.AddDate(0, 0, -measuredDays)
	used, err := factrows.FolderSpend(ctx, st, folder, since.Format(time.DateOnly), now.Format(time.DateOnly))
	if err != nil || used.CostUSD > 0 {
		return false, err
	}
	done, err := st.Turns(ctx, store.TurnList{Folder: folder, Limit: 1})
	return len(done) > 0 && done[0].EndedAt > since.UnixMilli(), err
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
