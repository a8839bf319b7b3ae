// Package routing decides where inbound rows go. A Table is the compiled routes and groups of one
// moment; its Resolve tries a fixed list of rules; a Loader keeps the current table in step with the
// database.
package routing

import (
	"fmt"
	"slices"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/routecheck"
)

// dropTarget is the target of a route by which messages are ignored.
const dropTarget = "builtin:drop"

// maxNotes bounds how many invalid rows are named; the rest is counted.
const maxNotes = 20

// Table is immutable, so any number of goroutines may use it.
type Table struct {
	Version int64

	routes   []msg.Route // as stored, in the order in which they are tried
	groups   []msg.Group
	defaults msg.Impulse

	index    *match.Index
	folders  map[string]bool
	impulses map[int64]msg.Impulse // by route, merged; those without impulse_config are not in it
	problems []string
}

// New compiles a table. Invalid rows are left out: such a route matches nothing, a group with an
// invalid folder is not registered. Notes names them.
func New(routes []msg.Route, groups []msg.Group, defaults msg.Impulse) *Table {
	t := &Table{
		routes: routes, groups: groups, defaults: defaults,
		folders: make(map[string]bool, len(groups)), impulses: map[int64]msg.Impulse{},
	}
	for _, g := range groups {
		if err := CheckGroup(g); err != nil {
			t.problems = append(t.problems, fmt.Sprintf("group %.80q: %v", g.Folder, err))
		}
		// A group with an invalid config still answers.
		if msg.ValidFolder(g.Folder) == nil {
			t.folders[g.Folder] = true
		}
	}
	t.compile()
	return t
}

func (t *Table) compile() {
	rows := make([]match.Row, 0, len(t.routes))
	for _, r := range t.routes {
		target, err := match.ParseTarget(r.Target)
		if err == nil && target.Folder != "" && !t.Has(target.Folder) {
			t.noteInvalid(r.ID, routecheck.Unregistered(target.Folder))
			continue
		}
		rows = append(rows, row(r))
	}
	index, invalid := match.Compile(rows)
	t.index = index
	for _, r := range invalid {
		err := r.Err
		if drop := t.Route(r.ID); drop != nil && drop.Target == dropTarget {
			err = fmt.Errorf("%w; until then it drops no message", err)
		}
		t.noteInvalid(r.ID, err)
	}
	for _, r := range t.routes {
		if r.Impulse == nil {
			continue
		}
		if merged, err := t.defaults.Merge(r.Impulse); err == nil {
			t.impulses[r.ID] = merged
		}
	}
}

func (t *Table) noteInvalid(id int64, err error) {
	t.problems = append(t.problems, fmt.Sprintf("route %d matches nothing: %v", id, err))
}

func row(r msg.Route) match.Row {
	return match.Row{ID: r.ID, Seq: r.Seq, Match: r.Match, Target: r.Target, Impulse: r.Impulse}
}

// Len returns the number of routes, invalid ones included.
func (t *Table) Len() int { return len(t.routes) }

// Has reports whether folder is a registered group.
func (t *Table) Has(folder string) bool { return t.folders[folder] }

// Members returns the members that a group's config names, false if the group is not registered.
func (t *Table) Members(folder string) (groupconfig.Members, bool) {
	at := slices.IndexFunc(t.groups, func(g msg.Group) bool { return g.Folder == folder })
	if at < 0 || !t.Has(folder) {
		return groupconfig.Members{}, false
	}
	m, _ := groupconfig.ReadMembers(t.groups[at].Config) // of an invalid config the least
	return m, true
}

// Reachable returns the groups that the sender of a chat's rows may address by @name, besides the
// chat's own. as returns members as they are for the sender.
func (t *Table) Reachable(home, sender string, operator bool, as func(groupconfig.Members) groupconfig.Members) (
	folders []string) {
	own, ok := t.Members(home)
	if !ok || !as(own).Admits(sender, operator) {
		return nil
	}
	for _, g := range t.groups {
		if g.Folder == home || !t.Has(g.Folder) || !operator &&
			(own.OwnGroup || msg.World(g.Folder) != msg.World(home)) {
			continue
		}
		if m, _ := groupconfig.ReadMembers(g.Config); as(m).Admits(sender, operator) {
			folders = append(folders, g.Folder)
		}
	}
	return folders
}

// Route returns the row with that id, nil if there is none.
func (t *Table) Route(id int64) *msg.Route {
	at := slices.IndexFunc(t.routes, func(r msg.Route) bool { return r.ID == id })
	if at < 0 {
		return nil
	}
	return &t.routes[at]
}

// Routed is routecheck.Routed of the table.
func (t *Table) Routed(chatJID, sender, folder string) bool {
	return routecheck.Routed(t.routes, t.Has, chatJID, sender, folder)
}

// Notes returns the problem of each invalid row, one line each.
func (t *Table) Notes() []string {
	if more := len(t.problems) - maxNotes; more > 0 {
		return append(slices.Clone(t.problems[:maxNotes]), fmt.Sprintf("%d more rows are bad", more))
	}
	return t.problems
}

// Warnings returns the warnings about valid rows, for operators. It is computed by each call.
func (t *Table) Warnings() []routecheck.Warning { return routecheck.Warnings(t.routes, t.groups) }

// InvalidRows counts the rows that Notes is about.
func (t *Table) InvalidRows() int { return len(t.problems) }

// WithRoutes returns the table as it would be with other routes. Rows without an id come after
// those with the same seq, as they would once added. The first invalid row is an error.
func (t *Table) WithRoutes(routes []msg.Route) (*Table, error) {
	if found := Problems(routes, t.Has); len(found) > 0 {
		return nil, fmt.Errorf("routes[%d]: %s", found[0].Row, found[0].Text)
	}
	routes = slices.Clone(routes)
	var last int64
	for _, r := range routes {
		last = max(last, r.ID)
	}
	for i := range routes {
		if routes[i].ID == 0 {
			last++
			routes[i].ID = last
		}
	}
	edited := New(routes, t.groups, t.defaults)
	edited.Version = t.Version
	return edited, nil
}

// Problems returns what is wrong with the rows of a table, at most one problem of a row.
func Problems(routes []msg.Route, registered func(folder string) bool) []routeapi.Problem {
	all := []routeapi.Problem{} // [] rather than null
	seen := map[int64]bool{}
	for i, r := range routes {
		err := routecheck.Problem(r, registered)
		switch {
		case r.ID < 0:
			err = fmt.Errorf("the id is %d", r.ID)
		case r.ID != 0 && seen[r.ID]:
			err = fmt.Errorf("id %d is there twice", r.ID)
		}
		seen[r.ID] = true
		if err != nil {
			all = append(all, routeapi.Problem{Row: i, Text: err.Error()})
		}
	}
	return all
}

// CheckGroup returns the problem of a group's folder or config.
func CheckGroup(g msg.Group) error {
	if err := msg.ValidFolder(g.Folder); err != nil {
		return err
	}
	if n := max(len(g.Config), len(g.Name)); n > routecheck.MaxConfig {
		return fmt.Errorf("name or config has %d bytes, at most %d are taken", n, routecheck.MaxConfig)
	}
	if _, err := groupconfig.Parse(g.Config); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	return nil
}
