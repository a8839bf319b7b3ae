package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

// maxRouteLines is how many rows of the table are on a page.
const maxRouteLines = 50

// list shows the routes with a text, from one of them on, counted from 0.
func (c routePages) list(r *http.Request) (*shown, error) {
	ctx, query := r.Context(), strings.TrimSpace(r.URL.Query().Get("q"))
	table, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	page := pages.Routes{Count: len(table.routes), Query: query}
	var found []int // places, from 0
	for i, route := range table.routes {
		if query == "" || contains(query, route.Match, route.Target) {
			found = append(found, i)
		}
	}
	start, _ := strconv.Atoi(r.URL.Query().Get("from")) // the first without a number
	if start = min(max(start, 0), len(found)); start > 0 {
		page.Before = below(r, "from", strconv.Itoa(max(0, start-maxRouteLines)))
	}
	if end := start + maxRouteLines; end < len(found) {
		page.After, found = below(r, "from", strconv.Itoa(end)), found[:end]
	}
	page.Rows, err = c.routeLines(ctx, table, found[start:])
	return &shown{data: page}, err
}

func contains(text string, in ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(in, func(s string) bool { return strings.Contains(strings.ToLower(s), text) })
}

// review has why a route matches nothing, "" if it is valid, and the warnings about it.
type review struct {
	problem  string
	warnings []string
}

// reviewOf reviews routes in the order in which they are tried.
func reviewOf(routes []msg.Route, groups []msg.Group) []review {
	all := make([]review, len(routes))
	routes, registered := slices.Clone(routes), routecheck.Registered(groups)
	for i := range routes {
		routes[i].ID = int64(i) // warnings name their routes by these
		if err := routecheck.Problem(routes[i], registered); err != nil {
			all[i].problem = plaintext.Line(err.Error())
		}
	}
	for _, w := range routecheck.Warnings(routes, groups) {
		all[w.Route].warnings = append(all[w.Route].warnings, plaintext.Line(w.Beside))
	}
	for i, first := range routecheck.Shadowed(routes, groups) {
		all[i].warnings = append(all[i].warnings,
			fmt.Sprintf("never used: the route at place %d matches all that it does", first+1))
	}
	return all
}

// routeLines are the rows of the table at some places, from 0.
func (c *site) routeLines(ctx context.Context, t *table, places []int) (all []pages.RouteLine, err error) {
	exprs := make([]string, len(places))
	for i, at := range places {
		exprs[i] = t.routes[at].Match
	}
	words, err := c.matchWords(ctx, exprs)
	if err != nil {
		return nil, err
	}
	for i, at := range places {
		all = append(all, routeLine(t.routes[at], at, words[i], t.review()[at]))
	}
	return all, nil
}

func routeLine(r msg.Route, at int, words string, of review) pages.RouteLine {
	line := pages.RouteLine{ID: r.ID, Place: at + 1, Match: r.Match, Words: words, Target: r.Target,
		Waits: waitWords(r.Impulse), Problem: of.problem, Warnings: of.warnings}
	line.Does, line.Folder = targetWords(r.Target)
	return line
}

func lines(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = plaintext.Line(text)
	}
	return all
}

// matchWords words each of some expressions, with the titles of chats.
func (c *site) matchWords(ctx context.Context, exprs []string) ([]string, error) {
	words := make([]string, len(exprs))
	with := func(name func(jid string) string) {
		for i, text := range exprs {
			words[i] = "nothing: it cannot be read"
			if e, err := match.ParseMatch(text); err == nil {
				words[i] = plaintext.Line(e.Words(name))
			}
		}
	}
	var jids []string
	with(func(jid string) string {
		jids = append(jids, jid)
		return jid
	})
	titles, err := c.titles(ctx, jids)
	with(func(jid string) string {
		if title := titles.Of(jid); title != "" {
			return fmt.Sprintf("“%s” (%s)", title, jid)
		}
		return jid
	})
	return words, err
}

// targetWords words a target. folder is the group that follows the words, "" for none.
func targetWords(text string) (words, folder string) {
	target, err := match.ParseTarget(text)
	switch {
	case err != nil:
		return "goes nowhere", ""
	case target.Kind == match.Trigger:
		return "answered by", target.Folder
	case target.Kind == match.Observe:
		return "read along by", target.Folder
	case target.Kind == match.Daemon && target.Name == "onbod":
		return "asks you to connect the chat", ""
	case target.Kind == match.Daemon:
		return "goes to the daemon " + target.Name, ""
	case target.Name == "ping":
		return "answered with pong", ""
	default:
		return "ignored", ""
	}
}

// waitWords says how long messages are held before they start a turn, "" if the route sets nothing.
func waitWords(config json.RawMessage) string {
	if len(config) == 0 {
		return ""
	}
	var set struct {
		Quiet     *int64         `json:"quiet_ms"`
		Hold      *int64         `json:"max_hold_ms"`
		Threshold *int64         `json:"threshold"`
		Weights   map[string]int `json:"weights"`
	}
	_, invalid := (msg.Impulse{}).Merge(config)
	if err := cmp.Or(invalid, json.Unmarshal(config, &set)); err != nil {
		return "its waiting settings cannot be read"
	}
	var words []string
	if set.Quiet != nil {
		words = append(words, "waits for silence of "+duration(*set.Quiet))
	}
	if set.Hold != nil {
		words = append(words, "waits at most "+duration(*set.Hold))
	}
	if set.Threshold != nil {
		words = append(words, fmt.Sprintf("starts at a weight of %d", *set.Threshold))
	}
	for _, verb := range slices.Sorted(maps.Keys(set.Weights)) {
		words = append(words, fmt.Sprintf("%s weighs %d", plaintext.Line(verb), set.Weights[verb]))
	}
	return strings.Join(words, "; ")
}

func duration(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
