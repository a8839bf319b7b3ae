// Package routecheck warns operators about a table of routes that works: which
// groups strangers can reach, and which routes were probably meant for display names. It is pure.
package routecheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
)

// Opening is a route through which strangers reach a group: any user of a platform, unless the group's
// config has a list of those who may use it.
type Opening struct {
	Route    int64
	Match    string
	Folder   string
	DMs      bool // direct messages, too: those of all strangers share the group's sessions
	Observes bool // the route only observes, but a text that begins with #name or @name starts a turn
}

// String names the route, the group, and the way to close it.
func (o Opening) String() string {
	return fmt.Sprintf("route %d (%.80s) %s", o.Route, cmp.Or(o.Match, "everything"), o.problem())
}

func (o Opening) problem() string {
	var b strings.Builder
	if o.Observes {
		fmt.Fprintf(&b, "only observes, but lets any user reach group %s by a text that begins with #name or @name",
			o.Folder)
	} else {
		fmt.Fprintf(&b, "lets any user reach group %s", o.Folder)
	}
	if o.DMs {
		b.WriteString("; direct messages of all of them share its sessions")
	}
	b.WriteString(": match a sender or a room, or set roles.ask in the group's config")
	return b.String()
}

// Openings returns the routes that let strangers in, in the order in which routes are tried. Left out
// are those that match nothing, as they are invalid or an earlier route matches all that they do.
func Openings(routes []msg.Route, groups []msg.Group) []Opening {
	return openings(parse(routes), MembersOf(groups))
}

func openings(routes []match.Route, members map[string]groupconfig.Members) (all []Opening) {
	before := earlier{}
	for i, r := range routes {
		folder, expr := r.Target.Folder, r.Expr()
		group, registered := members[folder]
		if folder != "" && !registered {
			continue
		}
		if folder != "" && group.Open() && expr.AdmitsStrangers() {
			if _, shadowed := before.matching(expr); !shadowed {
				all = append(all, Opening{Route: r.ID, Match: r.Match, Folder: folder,
					DMs: expr.AdmitsStrangersDMs(), Observes: r.Target.Kind == match.Observe})
			}
		}
		before.add(expr, i)
	}
	return all
}

// Reached returns the groups that strangers reach through the openings, each with the first opening:
// those of the routes, and the others of their world that may be addressed there by @name.
func Reached(open []Opening, groups []msg.Group) map[string]Opening {
	return reached(open, groups, MembersOf(groups))
}

func reached(open []Opening, groups []msg.Group, members map[string]groupconfig.Members) map[string]Opening {
	reached := map[string]Opening{}
	for _, o := range open {
		if _, ok := reached[o.Folder]; !ok {
			reached[o.Folder] = o
		}
	}
	for _, from := range groups {
		o, ok := reached[from.Folder]
		if !ok || o.Folder != from.Folder || members[from.Folder].OwnGroup {
			continue
		}
		for _, to := range groups {
			if _, ok := reached[to.Folder]; !ok && members[to.Folder].Open() &&
				msg.World(to.Folder) == msg.World(from.Folder) {
				reached[to.Folder] = o
			}
		}
	}
	return reached
}

// Warning is a line about a route, and about the group that it opens, if any.
type Warning struct {
	Route  int64
	Folder string
	Text   string
	Beside string // the text where it stands beside its route: it does not name that
}

// MaxLines bounds how many warnings about a table are logged and shown at once; `routd check` has all.
const MaxLines = 10

// Lines returns the texts of at most limit warnings, then the number of further ones.
func Lines(warnings []Warning, limit int) []string {
	lines := make([]string, 0, min(len(warnings), limit+1))
	for _, w := range warnings[:min(len(warnings), limit)] {
		lines = append(lines, w.Text)
	}
	if more := len(warnings) - limit; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more warnings: see `routd check`", more))
	}
	return lines
}

// Warnings returns the routes that an operator should look at. The routes come first through which strangers reach
// a group.
func Warnings(routes []msg.Route, groups []msg.Group) (all []Warning) {
	warn := func(route int64, folder, between, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		all = append(all, Warning{route, folder, fmt.Sprintf("route %d%s%s", route, between, text), text})
	}
	valid := parse(routes)
	members := MembersOf(groups)
	open := openings(valid, members)
	for _, o := range open {
		all = append(all, Warning{o.Route, o.Folder, o.String(), o.problem()})
	}
	through := reached(open, groups, members)
	for _, folder := range slices.Sorted(maps.Keys(through)) {
		if o := through[folder]; o.Folder != folder {
			warn(o.Route, folder, " ", "lets any user reach group %s, too, by @name from the chats of %s: "+
				`set "reach":"none" in the config of %[2]s`, folder, o.Folder)
		}
	}
	for _, r := range valid {
		if value := r.Expr().NameLike(); value != "" {
			warn(r.ID, "", ": ", "sender=%.80s is compared with ids alone, such as telegram:42: "+
				"use sender_name for a display name", value)
		}
	}
	return all
}

// parse returns the valid routes in the order in which they are tried.
func parse(routes []msg.Route) []match.Route {
	valid := make([]match.Route, 0, len(routes))
	for _, r := range routes {
		route, err := match.ParseRow(match.Row{ID: r.ID, Seq: r.Seq, Match: r.Match, Target: r.Target,
			Impulse: r.Impulse})
		if err == nil {
			valid = append(valid, route)
		}
	}
	slices.SortFunc(valid, func(a, b match.Route) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	return valid
}

// MembersOf returns the rights of the members of each registered group, by its folder.
func MembersOf(groups []msg.Group) map[string]groupconfig.Members {
	all := make(map[string]groupconfig.Members, len(groups))
	for _, g := range groups {
		if msg.ValidFolder(g.Folder) == nil {
			all[g.Folder], _ = groupconfig.ReadMembers(g.Config) // of an invalid config the least
		}
	}
	return all
}

// implied adds the platform and the account that a chat's address has.
func implied(conditions []string) []string {
	conditions = slices.Clone(conditions)
	for _, c := range conditions {
		address, ok := strings.CutPrefix(c, "chat_jid=")
		if name, _, whole := strings.Cut(address, ":"); ok && whole && !strings.ContainsAny(name, `*?[\`) {
			platform, account := msg.SplitAccount(name)
			conditions = append(conditions, "platform="+platform, "account="+account)
		}
	}
	slices.Sort(conditions)
	return slices.Compact(conditions)
}

// subsets returns each choice of the conditions, joined. There are at most nine conditions, and so few subsets.
func subsets(conditions []string) []string {
	all := make([]string, 0, 1<<len(conditions))
	for set := range 1 << len(conditions) {
		var some []string
		for i, c := range conditions {
			if set&(1<<i) != 0 {
				some = append(some, c)
			}
		}
		all = append(all, strings.Join(some, " "))
	}
	return all
}
