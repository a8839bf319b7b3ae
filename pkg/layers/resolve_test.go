package layers

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
)

func TestResolveName(t *testing.T) {
	groups := []string{
		"acme", "acme/eng", "acme/eng/oncall", "acme/eng/bob", "acme/ops", "acme/bob", "acme/sales/eu",
		"globex", "globex/eng", "globex/acme", "bob",
	}
	exists := func(folder string) bool { return slices.Contains(groups, folder) }
	tests := []struct {
		title, name, home string
		operator          bool
		want              string // "" when there is none
	}{
		{"below home", "oncall", "acme/eng", false, "acme/eng/oncall"},
		{"in the world", "ops", "acme/eng", false, "acme/ops"},
		{"below home before the world", "bob", "acme/eng", false, "acme/eng/bob"},
		{"in the world, from the world", "bob", "acme", false, "acme/bob"},
		{"the world itself", "acme", "acme/eng/oncall", false, "acme"},
		{"below home before the world itself", "acme", "globex", false, "globex/acme"},
		{"another world", "globex", "acme/eng", false, ""},
		{"a world of that name is not meant", "bob", "globex", false, ""},
		{"no such group", "nowhere", "acme/eng", false, ""},
		{"grandchild by its last name", "eu", "acme", false, ""},
		{"path in the world", "acme/sales/eu", "acme/eng", false, "acme/sales/eu"},
		{"path below home", "acme/eng/oncall", "acme/eng", false, "acme/eng/oncall"},
		{"path is not relative", "sales/eu", "acme", false, ""},
		{"path in another world", "globex/eng", "acme/eng", false, ""},
		{"path that is not a group", "acme/nowhere", "acme", false, ""},
		{"no home", "bob", "", false, ""},
		{"no home, path", "acme/eng", "", false, ""},
		{"home is not a group", "eng", "initech", false, ""},

		{"operator, another world", "globex", "acme/eng", true, "globex"},
		{"operator, below home first", "bob", "acme/eng", true, "acme/eng/bob"},
		{"operator, top level", "bob", "globex", true, "bob"},
		{"operator, path in another world", "globex/eng", "acme", true, "globex/eng"},
		{"operator, no home", "bob", "", true, "bob"},
		{"operator, no home, path", "acme/eng", "", true, "acme/eng"},
		{"operator, no such group", "nowhere", "acme", true, ""},
		{"operator, empty name", "", "acme", true, ""},
	}
	for _, tt := range tests {
		got, ok := ResolveName(tt.name, tt.home, tt.operator, exists)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: ResolveName(%q, %q, %v) = %q, %v; want %q", tt.title, tt.name, tt.home, tt.operator, got, ok, tt.want)
		}
	}
}

// TestResolveName_NoOperator_StaysInItsWorld lets every folder exist: a sender who is
// no operator reaches only groups of the own world, by any name.
func TestResolveName_NoOperator_StaysInItsWorld(t *testing.T) {
	hostile := []string{"..", "../globex", "acme/../globex", "/globex", "acme/", "globex\x00", "ACME", strings.Repeat("a/", 1<<19)}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(
			rapid.StringMatching(`[ab]{1,2}(/[ab]{1,2}){0,8}`), rapid.SampledFrom(hostile), rapid.String(),
		).Draw(t, "name")
		home := rapid.StringMatching(`([ab]{1,2}(/[ab]{1,2}){0,2})?`).Draw(t, "home")
		folder, ok := ResolveName(name, home, false, func(string) bool { return true })
		if ok && !msg.Within(folder, msg.World(home)) {
			t.Fatalf("%q from %q reaches %q", name, home, folder)
		}
		if ok && msg.ValidFolder(name) != nil {
			t.Fatalf("%q from %q is %q, but no folder is named so", name, home, folder)
		}
		if !ok && folder != "" {
			t.Fatalf("%q from %q is not a group, yet %q", name, home, folder)
		}
		if ok && strings.Contains(name, "/") && folder != name {
			t.Fatalf("the path %q from %q is %q", name, home, folder)
		}
	})
}
