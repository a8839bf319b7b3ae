package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"arizuko/migrations"
	"arizuko/pkg/cli"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
)

// warnOfStrangers names the groups that strangers can reach and whose agents nothing confines. It reads
// the database itself, so that gated need not run.
func warnOfStrangers(ctx context.Context, cfg Config, defaults groupconfig.Config, out io.Writer) (err error) {
	if _, err := os.Stat(cfg.DBPath()); errors.Is(err, os.ErrNotExist) {
		return nil // not migrated yet
	}
	st, err := store.OpenReadOnly(ctx, cfg.DBPath(), migrations.Latest())
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
	for _, line := range unconfined(routes, groups, defaults) {
		if _, err := fmt.Fprintln(out, "warning:", cli.PrintableLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// unconfined returns a line for each group that strangers can reach while its agent runs as process.
func unconfined(routes []msg.Route, groups []msg.Group, defaults groupconfig.Config) (lines []string) {
	runtimes := map[string]groupconfig.Runtime{}
	for _, g := range groups {
		if c, err := groupconfig.Parse(g.Config); err == nil { // with an invalid config no agent runs
			runtimes[g.Folder] = c.Over(defaults).Agent.Runtime
		}
	}
	reached := routecheck.Reached(routecheck.Openings(routes, groups), groups)
	for _, folder := range slices.Sorted(maps.Keys(reached)) {
		if runtimes[folder] != groupconfig.Process {
			continue
		}
		by := fmt.Sprintf("route %d", reached[folder].Route)
		if from := reached[folder].Folder; from != folder {
			by += " and @name from " + from
		}
		lines = append(lines, fmt.Sprintf("strangers can reach group %s (by %s), whose agent runs as process: nothing confines what they talk it into; "+
			"use AGENT_SANDBOX=bwrap or AGENT_RUNTIME=docker, or close the group: see `routd check`",
			folder, by))
	}
	return lines
}
