package console

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

// maxRouteLines is how many rows of the table are on a page.
const maxRouteLines = 50

// list shows the routes with a text, from the one with an id on; "" is the first.
func (c routePages) list(r *http.Request) (*shown, error) {
	ctx, query, from := r.Context(), strings.TrimSpace(r.URL.Query().Get("q")), r.URL.Query().Get("from")
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
	start := max(0, slices.IndexFunc(found, func(i int) bool { return fmt.Sprint(table.routes[i].ID) == from }))
	if start > 0 {
		page.Before = routesPath(query, table.routes[found[max(0, start-maxRouteLines)]].ID)
	}
	if end := start + maxRouteLines; end < len(found) {
		page.After, found = routesPath(query, table.routes[found[end]].ID), found[:end]
	}
	found = found[start:]
	exprs := make([]string, len(found))
	for i, at := range found {
		exprs[i] = table.routes[at].Match
	}
	words, err := c.matchWords(ctx, exprs)
	if err != nil {
		return nil, err
	}
	for i, at := range found {
		line := routeLine(table.routes[at], table.review())
		line.Place, line.Words = at+1, words[i]
		page.Rows = append(page.Rows, line)
	}
	return &shown{data: page}, nil
}

func routesPath(query string, from int64) string {
	values := url.Values{"from": {strconv.FormatInt(from, 10)}}
	if query != "" {
		values.Set("q", query)
	}
	return "/routes?" + values.Encode()
}

func contains(text string, in ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(in, func(s string) bool { return strings.Contains(strings.ToLower(s), text) })
}

// review has the problems and warnings of each row, by its id.
type review struct {
	problems map[int64]string
	warnings map[int64][]string
}

func reviewOf(routes []msg.Route, groups []msg.Group) review {
	r := review{map[int64]string{}, map[int64][]string{}}
	registered := routecheck.Registered(groups)
	places := map[int64]int{}
	for i, route := range routes {
		places[route.ID] = i + 1
		if err := routecheck.Problem(route, registered); err != nil {
			r.problems[route.ID] = err.Error()
		}
	}
	for _, w := range routecheck.Warnings(routes, groups) {
		r.warnings[w.Route] = append(r.warnings[w.Route], w.Beside)
	}
	shadowed := routecheck.Shadowed(routes, groups)
	for _, id := range slices.Sorted(maps.Keys(shadowed)) {
		r.warnings[id] = append(r.warnings[id],
			fmt.Sprintf("never used: the route at place %d matches all that it does", places[shadowed[id]]))
	}
	return r
}

func routeLine(r msg.Route, review review) pages.RouteLine {
	line := pages.RouteLine{
		ID: r.ID, Match: r.Match, Target: plaintext.Line(r.Target), Waits: waitWords(r.Impulse),
		Problem: plaintext.Line(review.problems[r.ID]), Warnings: lines(review.warnings[r.ID]),
	}
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
	var chats []string
	parsed := make([]*match.Expr, len(exprs))
	for i, text := range exprs {
		if e, err := match.ParseMatch(text); err == nil {
			parsed[i] = &e
			e.Words(func(jid string) string { chats = append(chats, jid); return jid })
		}
	}
	titles, err := c.titles(ctx, chats)
	if err != nil {
		return nil, err
	}
	named := func(jid string) string {
		if title := titles.Of(jid); title != "" {
			return fmt.Sprintf("“%s” (%s)", title, jid)
		}
		return jid
	}
	words := make([]string, len(exprs))
	for i, e := range parsed {
		words[i] = "nothing: it cannot be read"
		if e != nil {
			words[i] = plaintext.Line(e.Words(named))
		}
	}
	return words, nil
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

// targetLine is targetWords with the group.
func targetLine(text string) string {
	words, folder := targetWords(text)
	return strings.TrimSpace(words + " " + folder)
}

// waitWords says how long messages are held before they start a turn, "" if the route sets nothing.
func waitWords(config json.RawMessage) string {
	f, ok := impulseFields(config)
	if !ok {
		return "its waiting settings cannot be read"
	}
	var words []string
	for _, part := range []struct{ words, value string }{
		{"waits for silence of %s", f.Quiet}, {"waits at most %s", f.Hold}, {"starts at a weight of %s", f.Threshold},
		{"weights: %s", f.Weights},
	} {
		if part.value != "" {
			words = append(words, fmt.Sprintf(part.words, part.value))
		}
	}
	return strings.Join(words, "; ")
}
