package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"arizuko/pkg/cli"
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
		unmeasured, err := unmeasuredBudgets(ctx, st, groups, time.Now())
		if err != nil {
			return err
		}
		for _, line := range slices.Concat(unconfined(routes, groups, p.defaults), unknownAgents(groups, p.defaults),
			unmeasured, p.missing(ctx, groups)) {
			if _, err := fmt.Fprintln(out, "warning:", cli.PrintableLine(line)); err != nil {
				return err
			}
		}
		return nil
	})
}

// missing returns a line for each group whose own agent, or whose command for transcripts, cannot be run, such as that
// of a missing program.
func (p *programs) missing(ctx context.Context, groups []msg.Group) (lines []string) {
	for _, g := range groups {
		c, err := groupconfig.Parse(g.Config)
		if err != nil {
			continue // routd check says so
		}
		own := c.Agent.Command+c.Agent.Image != ""
		c = c.Over(p.defaults)
		if own {
			if err := p.check(ctx, c.Agent); err != nil {
				lines = append(lines,
					fmt.Sprintf("the agent of group %s cannot be run as %s: %v", g.Folder, c.Agent.Runtime, err))
			}
		}
		if c.Transcribe == "" {
			continue
		}
		transcriber := groupconfig.Agent{Runtime: c.Agent.Runtime, Command: c.Transcribe, Image: c.Agent.Image}
		if err := p.check(ctx, transcriber); err != nil {
			lines = append(lines, fmt.Sprintf("group %s gets no transcripts of voice notes: its config.transcribe cannot be run as %s: %v", g.Folder, c.Agent.Runtime, err))
		}
	}
	return lines
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
		used, err := factrows.FolderSpend(ctx, st, g.Folder, now.AddDate(0, 0, -measuredDays).Format(time.DateOnly),
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
