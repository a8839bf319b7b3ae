package plaintext_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"arizuko/pkg/adapter/plaintext"
)

func TestLine(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{" \t\n", ""},
		{" Ada  \n Lovelace ", "Ada Lovelace"},
		{"a\x00b\x1bc\u0085d\u2028e", "a b c d e"},
		{"\u202Aa\u202Eb\u2060c\u206Fd\u200Ee\u200Ff\u061Cg", "abcdefg"},
		{"\u200Ba\uFEFFb\u00ADc\u180Ed\u2800e\u3164f\uFFA0g\u115Fh\u1160", "abcdefgh"},
		{"👩\u200D💻", "👩\u200D💻"},
		{"\u200D\u200C\uFE0F", ""},
		{"👍", "👍"},
		{"…", "…"},
		{"7", "7"},
	} {
		if got := plaintext.Line(tt.in); got != tt.want {
			t.Errorf("Line(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestLine_AnyText_IsOneLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		got := plaintext.Line(s)
		if strings.ContainsFunc(got, unicode.IsControl) || strings.ContainsAny(got, "\u2028\u2029\u202e") || got != strings.TrimSpace(got) {
			t.Fatalf("%q became %q", s, got)
		}
		if again := plaintext.Line(got); again != got {
			t.Fatalf("%q became %q, and that %q", s, got, again)
		}
	})
}

func TestBracket(t *testing.T) {
	for _, tt := range []struct {
		details []string
		want    string
	}{
		{nil, "[venue]"},
		{[]string{"", "\n"}, "[venue]"},
		{[]string{"", "Louvre", "Pa\nris"}, "[venue: Louvre, Pa ris]"},
	} {
		if got := plaintext.Bracket("venue", tt.details...); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.details, got, tt.want)
		}
	}
}

func TestApply(t *testing.T) {
	const text = "hello (@us), you"
	for _, tt := range []struct {
		name    string
		changes []plaintext.Change
		want    string
	}{
		{"none", nil, text},
		{"an insertion", []plaintext.Change{{From: 5, To: 5, Insert: " there"}}, "hello there (@us), you"},
		{"a replacement", []plaintext.Change{{From: 7, To: 10, Insert: "@me"}}, "hello (@me), you"},
		{"two", []plaintext.Change{{From: 0, To: 5, Insert: "hi"}, {From: 13, To: 16, Insert: "me"}}, "hi (@us), me"},
		{"overlapping", []plaintext.Change{{From: 0, To: 10}, {From: 7, To: 11, Insert: "!"}}, "!, you"},
		{"one within another", []plaintext.Change{{From: 0, To: 11}, {From: 7, To: 10}}, ", you"},
		{"a word with its blanks", []plaintext.Change{{From: 6, To: 12, Names: plaintext.Us}}, "hello you"},
		{"all", []plaintext.Change{{From: 0, To: 16, Names: plaintext.Us}}, ""},
	} {
		if got := plaintext.Apply(text, tt.changes); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestApply_OurName_StaysBesideOthers: in the texts we are @us, others @them or @eng, which may be a group.
func TestApply_OurName_StaysBesideOthers(t *testing.T) {
	names := regexp.MustCompile(`@\w+`)
	for text, want := range map[string]string{
		"@us, @them are you both listening?": "@us, @them are you both listening?",
		"@them and @us: compare":             "@them and @us: compare",
		"@them, @them, and @us: compare":     "@them, @them, and @us: compare",
		"@us @them compare":                  "@us @them compare",
		"what do @us & @them think?":         "what do @us & @them think?",
		"@us und @eng, bitte":                "@us und @eng, bitte",

		"@us @eng hello":                  "@eng hello",
		"@us\n@eng hello":                 "@eng hello",
		"@us #trip ask @them":             "#trip ask @them",
		"@us /new @them":                  "/new @them",
		"/stop @us":                       "/stop",
		"@us please tell @them":           "please tell @them",
		"hello @us.\n@them, hello to you": "hello.\n@them, hello to you",
		"@us @us hello":                   "hello",
	} {
		var changes []plaintext.Change
		for _, at := range names.FindAllStringIndex(text, -1) {
			c := plaintext.Change{From: at[0], To: at[1], Insert: text[at[0]:at[1]]}
			c.Names = map[string]plaintext.Named{"@us": plaintext.Us, "@them": plaintext.Other, "@eng": plaintext.Token}[c.Insert]
			changes = append(changes, c)
		}
		if got := plaintext.Apply(text, changes); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestCloseUp(t *testing.T) {
	for _, tt := range []struct{ left, right, want string }{
		{"", "", ""},
		{"", " hello", "hello"},
		{"hello ", " ", "hello"},
		{"hello ", " you", "hello you"},
		{"hello ", "  you", "hello  you"},
		{"hello ", ", you", "hello, you"},
		{"hello (", " you)", "hello (you)"},
		{"hello ", "you", "hello you"},
		{"hello", "you", "helloyou"},
		{"hello\n", " you", "hello\nyou"},
		{"hello\u00a0", "\u2003漢", "hello\u2003漢"},
	} {
		joined, rest := plaintext.CloseUp([]byte(tt.left), tt.right)
		if got := string(joined) + rest; got != tt.want {
			t.Errorf("%q and %q: got %q, want %q", tt.left, tt.right, got, tt.want)
		}
	}
}
