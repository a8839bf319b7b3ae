package routing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/routecheck"
)

// recipes are the chapters of docs/routing.md that begin with a number.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, chapter := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(chapter, "\n")
		if title[0] >= '0' && title[0] <= '9' {
			all[title] = body
		}
	}
	return all
}

// recipeRoutes reads the commands of a recipe, and their groups.
func recipeRoutes(t *testing.T, body string) (routes []msg.Route, groups []msg.Group) {
	t.Helper()
	flag := func(line, pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(line)
		if found == nil {
			return ""
		}
		return found[1]
	}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "routd routes add ") {
			continue
		}
		r := msg.Route{ID: int64(len(routes) + 1), Match: flag(line, `--match '([^']*)'`), Target: flag(line, `--target (\S+)`)}
		r.Seq, _ = strconv.ParseInt(flag(line, `--seq (\S+)`), 10, 64)
		if impulse := flag(line, `--impulse '([^']*)'`); impulse != "" {
			r.Impulse = json.RawMessage(impulse)
		}
		target, err := routecheck.Route(r)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if target.Folder != "" {
			groups = append(groups, msg.Group{Folder: target.Folder, Config: json.RawMessage(`{}`)})
		}
		routes = append(routes, r)
	}
	slices.SortStableFunc(routes, func(a, b msg.Route) int { return cmp.Compare(a.Seq, b.Seq) })
	return routes, groups
}

// becomes words a decision as the cookbook does.
func becomes(a *routeapi.Answer, jid, verb string) string {
	switch a.Action {
	case routeapi.Observe:
		return fmt.Sprintf("read along by `%s`", a.Folder)
	case routeapi.Trigger:
		text := fmt.Sprintf("answered by `%s`", a.Folder)
		if a.Impulse.QuietMS > 0 {
			text += fmt.Sprintf(", waits for silence of %s, at most %dm", time.Duration(a.Impulse.QuietMS)*time.Millisecond, a.Impulse.MaxHoldMS/60_000)
		}
		if verb == msg.VerbReaction {
			text += fmt.Sprintf(", a reaction weighs %d", a.Impulse.Weight(verb))
		}
		return text
	case routeapi.Daemon:
		return "asks you to connect the chat"
	case routeapi.Builtin:
		return "ignored"
	}
	if a.Home == "" && (msg.KindOfJID(jid) == msg.ChatDM || verb == msg.VerbMention) {
		return "asks you to connect the chat"
	}
	return "goes nowhere"
}

func TestCookbook_Recipes_DoWhatTheySay(t *testing.T) {
	all := recipes(t)
	if len(all) < 10 {
		t.Errorf("%d recipes", len(all))
	}
	example := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\w+) \\| `([^`]+)` \\| (.+) \\|$")
	for title, body := range all {
		routes, groups := recipeRoutes(t, body)
		table := New(routes, groups, msg.DefaultImpulse(100, 5*time.Minute))
		if notes := table.Notes(); len(notes) > 0 || len(routes) == 0 {
			t.Errorf("%s: %d routes, %q", title, len(routes), notes)
		}
		examples := example.FindAllStringSubmatch(body, -1)
		if len(examples) == 0 || len(examples) != strings.Count(body, "\n| `") {
			t.Errorf("%s: %d examples can be read", title, len(examples))
		}
		used := map[int64]bool{}
		for _, e := range examples {
			item := routeapi.Item{ChatJID: e[1], Verb: e[2], Sender: e[3]}
			answer := table.Resolve(t.Context(), &item, Unengaged{})
			used[answer.RouteID] = true
			if got := becomes(&answer, item.ChatJID, item.Verb); got != e[4] {
				t.Errorf("%s: a %s in %s from %s: %s, the page says %s", title, e[2], e[1], e[3], got, e[4])
			}
		}
		for _, r := range routes {
			if !used[r.ID] {
				t.Errorf("%s: no example goes by the route %q", title, r.Match)
			}
		}
	}
}
