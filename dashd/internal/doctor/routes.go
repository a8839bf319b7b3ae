package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/daemon"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/facts"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

// checkRoutes checks the routing table: rows that are invalid, and routes that let strangers in.
func checkRoutes(ctx context.Context, e *examination) error {
	routes, err := e.st.Routes(ctx)
	if err != nil {
		return err
	}
	if e.groups, err = e.st.Groups(ctx); err != nil {
		return err
	}
	if e.runtimes, err = rows.LastRuntimes(ctx, e.st.Reader); err != nil {
		return err
	}
	reportInvalid(e, routes)
	all := routecheck.Warnings(routes, e.groups)
	for _, w := range all[:min(len(all), routecheck.MaxLines)] {
		remedy := strings.LastIndex(w.Text, ": ") // which each of them has
		e.Warn("route", w.Text[:remedy], w.Text[remedy+2:])
	}
	if more := len(all) - routecheck.MaxLines; more > 0 {
		e.Warn("route", fmt.Sprintf("%d more routes should be looked at", more), "`routd check` names them")
	}
	if !e.checked["gated"] { // whose own check knows its defaults; else this environment and the last run tell
		e.Unconfined(routes, e.groups, e.runtime)
	}
	if err := checkOperators(ctx, e); err != nil {
		return err
	}
	return checkHooks(ctx, e, routes)
}

// reportInvalid reports routes that match nothing, once for each reason.
func reportInvalid(e *examination, routes []msg.Route) {
	registered, invalid := routecheck.Registered(e.groups), map[string][]int64{} // ids by reason
	for _, r := range routes {
		if err := routecheck.Problem(r, registered); err != nil {
			invalid[err.Error()] = append(invalid[err.Error()], r.ID)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(invalid)) {
		ids := invalid[reason]
		text := fmt.Sprintf("route %d matches nothing: %s", ids[0], reason)
		if more := len(ids) - 1; more > 0 {
			text = fmt.Sprintf("route %d and %d more match nothing: %s", ids[0], more, reason)
		}
		e.Problem("route-invalid", text,
			fmt.Sprintf("register the group with `routd groups add`, or remove the route with "+
				"`routd routes rm %d` and add it again, corrected", ids[0]))
	}
}

// runtime is how a group's agent is run, "" if that is not known.
func (e *examination) runtime(g msg.Group) groupconfig.Runtime {
	c, _ := groupconfig.Parse(g.Config) // zero if it is invalid
	return cmp.Or(c.Agent.Runtime, groupconfig.Runtime(cmp.Or(e.env.AgentSandbox, e.env.AgentRuntime,
		e.runtimes[g.Folder])))
}

// checkOperators warns of an instance with a platform where no user may approve anything.
func checkOperators(ctx context.Context, e *examination) error {
	connected := slices.ContainsFunc(e.expected(), func(name string) bool {
		return daemon.TokenVariable(name) != "" && (e.env.hasToken(name) || e.alive(name))
	})
	all, err := facts.Operators(ctx, e.st.Reader, e.env.Operators)
	switch {
	case err != nil, !connected:
		return err
	case len(all) == 0:
		e.NoOperators()
		return nil
	}
	if chats, err := facts.OperatorChats(ctx, e.st.Reader, e.env.Operators); err != nil || len(chats) > 0 {
		return err
	}
	e.Warn("operators-unreached", "no operator has a direct chat with the bot: none is notified of requests",
		"each operator writes to the bot in a direct chat once, on a platform whose adapter runs")
	return nil
}

// ofMachine reports whether a user is one of the machine, and neither a number that gated gives to groups, from 30000
// on, nor the one of AGENT_USER.
func ofMachine(environ []string, uid int) bool {
	const firstOfGroups, lastOfGroups = 30000, 59999
	ofGroup := uid >= firstOfGroups && uid <= lastOfGroups
	return uid != 0 && !ofGroup && !slices.ContainsFunc(environ, func(entry string) bool {
		return strings.HasPrefix(entry, "AGENT_USER=") && entry != "AGENT_USER="
	})
}

// checkGroupFolders checks the folders of groups that have run.
func checkGroupFolders(_ context.Context, e *examination) error {
	data, err := os.Stat(e.Base.Data)
	if err != nil {
		return nil //nolint:nilerr // reported
	}
	user := dataowner.Of(data).UID
	for _, g := range e.groups {
		path := filepath.Join(e.Base.GroupsDir(), msg.DirName(g.Folder))
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && e.runtimes[g.Folder] != "":
			e.Problem("group-missing", "the folder "+path+" of group "+g.Folder+" is gone",
				"restore it from a backup; without one the agent's files are lost, and gated makes an empty folder at "+
					"the next turn")
		case err != nil:
		// gated as root gives each folder to the user of its group
		case user != 0 && dataowner.Of(info).UID != user, user == 0 && ofMachine(e.Environ, dataowner.Of(info).UID):
			e.Problem("group-owner",
				fmt.Sprintf("%s belongs to user %d, the data folder to user %d: its agent cannot write there", path,
					dataowner.Of(info).UID, user), fmt.Sprintf("chown -R %d %s", user, path))
		}
	}
	return nil
}
