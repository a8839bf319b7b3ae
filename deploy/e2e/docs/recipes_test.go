package docs

import (
	"encoding/json"
	"regexp"
	"testing"

	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

// A match in a README: of `routes add` or of a further example.
var recipes = regexp.MustCompile(`--match '([^']*)' --target ([\w/#:]+)|--match '([^']*)'`)

// A reader pastes what a README says: no recipe may let in users whom it does not name.
func TestRecipes_Routes_LetNoStrangerIn(t *testing.T) {
	t.Parallel()
	var registered []msg.Group
	for _, folder := range []string{"main", "acme/eng"} {
		registered = append(registered, msg.Group{Folder: folder, Config: json.RawMessage(`{}`)})
	}
	for _, page := range []string{"teled/README.md", "discd/README.md", "slakd/README.md", "routd/README.md"} {
		found := recipes.FindAllStringSubmatch(read(t, page), -1)
		if len(found) == 0 {
			t.Errorf("%s has no recipe: does the test still match how it is written?", page)
		}
		for _, m := range found {
			route := msg.Route{ID: 1, Match: m[1] + m[3], Target: m[2]}
			if route.Target == "" {
				route.Target = "main"
			}
			if _, err := match.ParseRow(match.Row{Match: route.Match, Target: route.Target}); err != nil {
				t.Errorf("%s: %s: %v", page, m[0], err)
			}
			for _, w := range routecheck.Warnings([]msg.Route{route}, registered) {
				t.Errorf("%s: %s: %s", page, m[0], w.Text)
			}
		}
	}
}
