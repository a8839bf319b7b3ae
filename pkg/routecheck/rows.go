package routecheck

import (
	"fmt"
	"strings"

	"arizuko/pkg/match"
	"arizuko/pkg/msg"
)

const (
	// MaxMatch bounds a match expression, and MaxConfig the JSON of a row, in bytes: each answer that
	// lists the rows has all of them.
	MaxMatch  = 4 << 10
	MaxConfig = 64 << 10
)

// Route returns the target of a row, or its problem. The caller checks whether the target's folder is
// registered.
func Route(r msg.Route) (match.Target, error) {
	if n := len(r.Match); n > MaxMatch {
		return match.Target{}, fmt.Errorf("match has %d bytes, at most %d are taken", n, MaxMatch)
	}
	if n := len(r.Impulse); n > MaxConfig {
		return match.Target{}, fmt.Errorf("impulse_config has %d bytes, at most %d are taken", n, MaxConfig)
	}
	route, err := match.ParseRow(match.Row{ID: r.ID, Seq: r.Seq, Match: r.Match, Target: r.Target, Impulse: r.Impulse})
	return route.Target, err
}

// Unregistered is the problem of a row that leads to a folder without a group.
func Unregistered(folder string) error { return fmt.Errorf("folder %s is not registered", folder) }

// Problem returns why a row matches nothing: it is invalid, or leads to no registered group.
func Problem(r msg.Route, registered func(folder string) bool) error {
	target, err := Route(r)
	if err == nil && target.Folder != "" && !registered(target.Folder) {
		err = Unregistered(target.Folder)
	}
	return err
}

// Routed reports whether a route leads from a chat to the folder or one below it, to trigger or to
// observe. A route for some senders of any chat counts if the sender is one of them; sender may be "". None counts
// after one that takes all rows of the chat.
func Routed(routes []msg.Route, registered func(folder string) bool, chatJID, sender, folder string) bool {
	if msg.Within(msg.AddressedFolder(chatJID), folder) {
		return true
	}
	chat := match.EventOf(chatJID, sender, "", "")
	for _, r := range routes {
		expr, exprErr := match.ParseMatch(r.Match)
		target, targetErr := match.ParseTarget(r.Target)
		if exprErr != nil || targetErr != nil || !expr.Reaches(&chat) {
			continue
		}
		if expr.OfSenders() && !expr.NamesChat() && (sender == "" || !expr.FromSender(&chat)) {
			continue
		}
		if msg.Within(target.Folder, folder) && registered(target.Folder) {
			return true
		}
		if !expr.OfSenders() && !expr.OfVerbs() {
			return false
		}
	}
	return false
}

// Registered reports whether a folder is one of the groups.
func Registered(groups []msg.Group) func(folder string) bool {
	folders := make(map[string]bool, len(groups))
	for _, g := range groups {
		folders[g.Folder] = msg.ValidFolder(g.Folder) == nil
	}
	return func(folder string) bool { return folders[folder] }
}

// Shadowed returns the valid routes that match nothing as an earlier one matches all that they do, each with the id
// of the first such route.
func Shadowed(routes []msg.Route, groups []msg.Group) map[int64]int64 {
	registered, valid := Registered(groups), parse(routes)
	before, shadowed := earlier{}, map[int64]int64{}
	for i, r := range valid {
		if folder := r.Target.Folder; folder != "" && !registered(folder) {
			continue
		}
		expr := r.Expr()
		if first, found := before.matching(expr); found {
			shadowed[r.ID] = valid[first].ID
		}
		before.add(expr, i)
	}
	return shadowed
}

// earlier are the routes before one: the index of the first that has these conditions.
type earlier map[string]int

func (e earlier) add(expr match.Expr, at int) {
	key := strings.Join(expr.Conditions(), " ")
	if _, ok := e[key]; !ok {
		e[key] = at
	}
}

// matching returns the first route that has some of the conditions of an expression and no others, so that it matches
// everything that has them all.
func (e earlier) matching(expr match.Expr) (first int, found bool) {
	for _, some := range subsets(implied(expr.Conditions())) {
		if at, ok := e[some]; ok && (!found || at < first) {
			first, found = at, true
		}
	}
	return first, found
}
