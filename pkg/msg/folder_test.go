package msg

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestValidFolder(t *testing.T) {
	tests := []struct {
		folder string
		reason string // part of the error, "" when valid
	}{
		{"acme", ""},
		{"acme/eng/oncall", ""},
		{"0", ""},
		{"a-b_c/9-", ""},
		{"a/b/c/d/e/f/g/h", ""},
		{"a/b/c/d/e/f/g/h/i", "8 segments deep"},
		{strings.Repeat("a/", 100_000), "8 segments deep"},
		{strings.Repeat("a", 200), ""},
		{strings.Repeat("a", 201), "longer than 200 bytes"},
		{"", "empty"},
		{"/", `segment ""`},
		{"/acme", `segment ""`},
		{"acme/", `segment ""`},
		{"acme//eng", `segment ""`},
		{"Acme", `segment "Acme"`},
		{"acme/-x", `segment "-x"`},
		{"_x", `segment "_x"`},
		{".", `segment "."`},
		{"acme/../root", `segment ".."`},
		{"acme eng", `segment "acme eng"`},
		{"acme\n", `segment "acme\n"`},
		{"a\x00", `segment "a\x00"`},
		{"zażółć", "segment"},
		{"аcme", "segment"}, // a Cyrillic first letter
		{"acme#observe", "segment"},
		{"folder:acme", "segment"},
		{"acme+eng", "segment"}, // see DirName
	}
	for _, tt := range tests {
		err := ValidFolder(tt.folder)
		switch {
		case tt.reason == "" && err != nil:
			t.Errorf("ValidFolder(%q) = %v, want nil", tt.folder, err)
		case tt.reason != "" && (err == nil || !strings.Contains(err.Error(), tt.reason)):
			t.Errorf("ValidFolder(%.50q) = %v, want an error about %s", tt.folder, err, tt.reason)
		case err != nil && len(err.Error()) > 400:
			t.Errorf("ValidFolder(%.50q): the error has %d bytes", tt.folder, len(err.Error()))
		}
	}
}

func TestParentAndWorld(t *testing.T) {
	tests := []struct{ folder, parent, world string }{
		{"", "", ""},
		{"acme", "", "acme"},
		{"acme/eng", "acme", "acme"},
		{"acme/eng/oncall", "acme/eng", "acme"},
	}
	for _, tt := range tests {
		if got := Parent(tt.folder); got != tt.parent {
			t.Errorf("Parent(%q) = %q, want %q", tt.folder, got, tt.parent)
		}
		if got := World(tt.folder); got != tt.world {
			t.Errorf("World(%q) = %q, want %q", tt.folder, got, tt.world)
		}
	}
}

func TestWithin(t *testing.T) {
	tests := []struct {
		folder, ancestor string
		want             bool
	}{
		{"acme", "acme", true},
		{"acme/eng", "acme", true},
		{"acme/eng/oncall", "acme", true},
		{"acme/eng/oncall", "acme/eng", true},
		{"acme", "acme/eng", false},
		{"acme2", "acme", false},
		{"acme-x/eng", "acme", false},
		{"acme/eng", "acme/en", false},
		{"acme", "", false},
		{"", "", false},
		{"", "acme", false},
	}
	for _, tt := range tests {
		if got := Within(tt.folder, tt.ancestor); got != tt.want {
			t.Errorf("Within(%q, %q) = %v, want %v", tt.folder, tt.ancestor, got, tt.want)
		}
	}
}

func TestDirName_OneFileName_OneFolder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		folder := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,5}`), 1, maxFolderDepth).Draw(t, "segments"), "/")
		})
		a, b := folder.Draw(t, "a"), folder.Draw(t, "b")
		name := DirName(a)
		if strings.ContainsAny(name, `/\.`) || (name == DirName(b)) != (a == b) || len(name) != len(a) {
			t.Fatalf("%q is %q, %q is %q", a, name, b, DirName(b))
		}
	})
}

// TestFolderTree goes up from any valid folder to its world.
func TestFolderTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,5}`), 1, maxFolderDepth).Draw(t, "segments")
		folder := strings.Join(segments, "/")
		steps := 0
		for at := folder; at != ""; at = Parent(at) {
			if err := ValidFolder(at); err != nil {
				t.Fatal(err)
			}
			if !Within(folder, at) || World(at) != segments[0] {
				t.Fatalf("%q is not above %q in world %q", at, folder, segments[0])
			}
			steps++
		}
		if steps != len(segments) {
			t.Fatalf("%d steps from %q to its world, want %d", steps, folder, len(segments))
		}
	})
}
