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
	valid, shadowed := parse(routes), map[int64]int64{}
	for i, first := range shadows(valid, Registered(groups)) {
		if first < i {
			shadowed[valid[i].ID] = valid[first].ID
		}
	}
	return shadowed
}

// shadows returns for each route the index of the first one that matches everything it does: its own if none before it
// does.
func shadows(routes []match.Route, registered func(folder string) bool) []int {
	before := map[string]int{} // the first route with these conditions
	firsts := make([]int, len(routes))
	for i, r := range routes {
		firsts[i] = i
		if folder := r.Target.Folder; folder != "" && !registered(folder) {
			continue
		}
		expr := r.Expr()
		conditions := expr.Conditions()
		for _, some := range subsets(implied(conditions)) {
			if at, ok := before[some]; ok {
				firsts[i] = min(firsts[i], at)
			}
		}
		if firsts[i] == i {
			before[strings.Join(conditions, " ")] = i
		}
	}
	return firsts
}
