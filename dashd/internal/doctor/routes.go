package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"arizuko/pkg/daemon"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

// routes checks the routing table: rows that are invalid, routes that let strangers in, groups that no route
// reaches.
func (e *examination) routes(ctx context.Context) error {
	routes, err := e.st.Routes(ctx)
	if err != nil {
		return err
	}
	if e.groups, err = e.st.Groups(ctx); err != nil {
		return err
	}
	if e.runtimes, err = e.st.LastRuntimes(ctx); err != nil {
		return err
	}
	targets := e.invalidRoutes(routes)
	all := routecheck.Warnings(routes, e.groups)
	for _, w := range all[:min(len(all), routecheck.MaxLines)] {
		e.warn("route", w.Text[:cut(w.Text)], strings.TrimPrefix(w.Text[cut(w.Text):], ": "))
	}
	if more := len(all) - routecheck.MaxLines; more > 0 {
		e.warn("route", fmt.Sprintf("%d more routes should be looked at", more), "`routd check` names them")
	}
	e.unconfined(routes)
	if err := e.noOperators(ctx); err != nil {
		return err
	}
	return e.unreached(ctx, targets, len(routes) > 0)
}

// cut is where the remedy of a warning begins: after its last colon with a blank.
func cut(text string) int {
	if i := strings.LastIndex(text, ": "); i > 0 {
		return i
	}
	return len(text)
}

// invalidRoutes reports routes that match nothing, and returns the folders that the others name.
func (e *examination) invalidRoutes(routes []msg.Route) map[string]bool {
	registered, targets := map[string]bool{}, map[string]bool{}
	for _, g := range e.groups {
		registered[g.Folder] = true
	}
	for _, r := range routes {
		parsed, err := match.ParseRow(match.Row{ID: r.ID, Seq: r.Seq, Match: r.Match, Target: r.Target, Impulse: r.Impulse})
		if err == nil && parsed.Target.Folder != "" && !registered[parsed.Target.Folder] {
			err = fmt.Errorf("group %s is not registered", parsed.Target.Folder)
		}
		if err != nil {
			e.problem("route-invalid", fmt.Sprintf("route %d matches nothing: %v", r.ID, err),
				fmt.Sprintf("register the group with `routd groups add`, or remove the route with `routd routes rm %d` and add it again, corrected", r.ID))
			continue
		}
		targets[parsed.Target.Folder] = true
	}
	return targets
}

// unconfined finds groups that strangers reach and whose agents nothing confines. gated's own check knows
// its defaults and is preferred; else this environment and the last run tell.
func (e *examination) unconfined(routes []msg.Route) {
	if e.checked["gated"] {
		return
	}
	reached := routecheck.Reached(routecheck.Openings(routes, e.groups), e.groups)
	configs := map[string][]byte{}
	for _, g := range e.groups {
		configs[g.Folder] = g.Config
	}
	for _, folder := range slices.Sorted(maps.Keys(reached)) {
		if e.runtime(folder, configs[folder]) == string(groupconfig.Process) {
			e.problem("unconfined", fmt.Sprintf("strangers can reach group %s (by route %d), whose agent runs as process: nothing confines what they talk it into", folder, reached[folder].Route),
				"use AGENT_SANDBOX=bwrap or AGENT_RUNTIME=docker, or close the group: see `routd check`")
		}
	}
}

// runtime is how a group's agent is run, "" if that is not known.
func (e *examination) runtime(folder string, config []byte) string {
	if c, err := groupconfig.Parse(config); err == nil && c.Agent.Runtime != "" {
		return string(c.Agent.Runtime)
	}
	switch {
	case e.env.AgentSandbox != "":
		return e.env.AgentSandbox
	case e.env.AgentRuntime != "":
		return e.env.AgentRuntime
	}
	return e.runtimes[folder]
}

// noOperators warns of an instance with a platform where no user may approve anything.
func (e *examination) noOperators(ctx context.Context) error {
	connected := slices.ContainsFunc(e.expected(), func(name string) bool {
		return daemon.TokenVariable(name) != "" && (e.env.hasToken(name) || e.alive(name))
	})
	switch {
	case !connected:
		return nil
	case len(e.env.Operators) == 0:
		e.warn("operators-empty", "OPERATORS is not set in this environment: chats can be approved on the dashboard only", operatorsFix)
		return nil
	}
	for _, operator := range e.env.Operators {
		jid, err := e.st.DirectChat(ctx, strings.TrimSpace(operator))
		if err != nil || jid != "" && msg.AddressedFolder(jid) == "" {
			return err
		}
	}
	e.warn("operators-unreached", "none of OPERATORS has a direct chat with the bot: no operator is notified of requests",
		"each operator writes to the bot in a direct chat once, on a platform whose adapter runs")
	return nil
}

// webGroup is the group that the launcher makes for the web chat.
const webGroup = "main"

// unreached finds groups that no route names and that were never used.
func (e *examination) unreached(ctx context.Context, targets map[string]bool, any bool) error {
	var names []string
	for _, g := range e.groups {
		if targets[g.Folder] || e.runtimes[g.Folder] != "" || !any || g.Folder == webGroup {
			continue
		}
		last, err := e.st.LastWebMessage(ctx, msg.PlatformWeb+":"+g.Folder)
		if err != nil {
			return err
		}
		if last == nil {
			names = append(names, g.Folder)
		}
	}
	if n := len(names); n > 0 {
		shown := strings.Join(names[:min(n, 2*maxNamed)], ", ")
		e.warn("group-unreached", fmt.Sprintf("no route leads to %s: %s", count(n, "group", "groups"), shown),
			"`routd routes add --match … --target GROUP`; until then only the web chat and @name reach it")
	}
	return nil
}

// groupFolders checks the folders of groups that have run.
func (e *examination) groupFolders(context.Context) error {
	user, known := e.dataOwner()
	if !known {
		return nil // reported
	}
	for _, g := range e.groups {
		path := filepath.Join(e.Base.GroupsDir(), msg.DirName(g.Folder))
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && e.runtimes[g.Folder] != "":
			e.problem("group-missing", "the folder "+path+" of group "+g.Folder+" is gone", "restore it from a backup; without one the agent's files are lost, and gated makes an empty folder at the next turn")
		case err == nil && user != 0 && owner(info) != user: // a gated that is root gives each group a user
			e.problem("group-owner", fmt.Sprintf("%s belongs to user %d, the data folder to user %d: its agent cannot write there", path, owner(info), user), fmt.Sprintf("chown -R %d %s", user, path))
		}
	}
	return nil
}
