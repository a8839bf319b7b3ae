package match

import (
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseGlob_Patterns_ParseAsExpected(t *testing.T) {
	tests := []struct {
		pattern string
		want    glob
	}{
		{"", glob{kind: exact}},
		{"abc", glob{kind: exact, head: "abc"}},
		{`a\*b`, glob{kind: exact, head: "a*b"}},
		{`\[x]`, glob{kind: exact, head: "[x]"}},
		{`\é`, glob{kind: exact, head: "é"}},
		{"*", glob{kind: star}},
		{"***", glob{kind: star}},
		{"telegram:-100*", glob{kind: star, head: "telegram:-100"}},
		{"*:77", glob{kind: star, tail: ":77"}},
		{"a*b", glob{kind: star, head: "a", tail: "b"}},
		{`\**\?`, glob{kind: star, head: "*", tail: "?"}},
		{"?", glob{kind: general}},
		{"a*b*c", glob{kind: stars, head: "a", tail: "c", pieces: []string{"b"}}},
		{"*b**cd*", glob{kind: stars, pieces: []string{"b", "cd"}}},
		{"*b?c*d", glob{kind: general, tail: "d", pieces: []string{"b", "c"}}},
		{"a*?", glob{kind: general, head: "a"}},
		{"?b", glob{kind: general, tail: "b"}},
		{"x[ab]y", glob{kind: general, head: "x", tail: "y"}},
		{`x[^\]*]y`, glob{kind: general, head: "x", tail: "y"}},
		{"[[]z", glob{kind: general, tail: "z"}},
	}
	for _, tt := range tests {
		got, err := parseGlob(tt.pattern)
		if err != nil {
			t.Errorf("parseGlob(%q): %v", tt.pattern, err)
		}
		tt.want.pattern = tt.pattern
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(glob{})); diff != "" {
			t.Errorf("parseGlob(%q) (-want +got):\n%s", tt.pattern, diff)
		}
	}
}

func TestGlob_Match_WholeValue(t *testing.T) {
	tests := []struct {
		pattern, value string
		want           bool
	}{
		{"ab*ba", "abba", true},
		{"ab*ba", "aba", false},
		{"ab*b", "ab", false},
		{"a*a", "a", false},
		{"a?a", "a", false},
		{"*", "", true},
		{"*", "a/b", false},
		{"a/*", "a/b", true},
		{"a/*", "a/b/c", false},
		{"*/b", "a/b", true},
		{"*/b", "a/a/b", false},
		{"a*/*b", "ax/xb", true},
		{"?", "é", true},
		{"?", "/", false},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{"A*", "a", false},
		{"*a*b*", "xaxbx", true},
		{"*a*b*", "xbxax", false},
		{"*ab*ba*", "xabax", false},
		{"*a*b", "a/b", false},
		{"*/*/*", "a/b/c", true},
	}
	for _, tt := range tests {
		g, err := parseGlob(tt.pattern)
		if err != nil {
			t.Errorf("parseGlob(%q): %v", tt.pattern, err)
		}
		if got := g.match(tt.value); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.value, got, tt.want)
		}
	}
}

// TestGlob_AnyPattern_SameAsPathMatch compares a glob with path.Match, malformed patterns included.
func TestGlob_AnyPattern_SameAsPathMatch(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"a", "a", "b", "ab", "/", ":", "é", "*", "*", "**", "?", "?", "[ab]", "[^a]", "[a-c]", "[é/]",
		`\*`, `\a`, `\\`, `[\]]`, "]", "[", "-", "\x80", `\`,
	})
	values := rapid.SampledFrom([]string{"a", "a", "b", "ab", "/", ":", "é", "*", `\`, "]", "\x80"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := join(rapid.SliceOfN(pieces, 0, 5).Draw(t, "pattern"))
		for range 50 {
			value := join(rapid.SliceOfN(values, 0, 5).Draw(t, "value"))
			want, wantErr := path.Match(pattern, value)
			g, err := parseGlob(pattern)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("parseGlob(%q) = %v, path.Match says %v", pattern, err, wantErr)
			}
			if err == nil && g.match(value) != want {
				t.Fatalf("%q matches %q: %v, path.Match says %v", pattern, value, !want, want)
			}
		}
	})
}
