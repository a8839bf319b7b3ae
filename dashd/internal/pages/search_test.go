package pages

import (
	"strings"
	"testing"
)

func TestPieces_Hits_AreMarkedAndNear(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 100)
	for _, test := range []struct{ text, find, want string }{
		{"nothing here", "", "nothing here"},
		{"the Build is red", "build RED", "the [Build] is [red]"},
		{"rebuild", "build", "rebuild"},
		{"builds", "build*", "[builds]"},
		{"a\nb\u202ec", "b", "a [bc]"},
		{"Ärger", "ärger", "[Ärger]"},
		{"<b>x</b>", "b x", "<[b]>[x]</[b]>"},
		{long + "end", "end", "…" + strings.Repeat("word ", 8) + "[end]"},
		{long, "none", strings.Repeat("word ", 24) + "…"},
		{"", "x", ""},
	} {
		var got strings.Builder
		for _, p := range piecesOf(test.text, test.find) {
			if p.Hit {
				got.WriteString("[" + p.Text + "]")
			} else {
				got.WriteString(p.Text)
			}
		}
		if got.String() != test.want {
			t.Errorf("%.40q, %q: %q, want %q", test.text, test.find, got.String(), test.want)
		}
	}
}

func TestTitles_Apart_SameNameOnOnePlatform(t *testing.T) {
	t.Parallel()
	titles := Titles{"telegram:1": "Alice", "telegram:2": "Alice", "slack:U1": "Alice", "telegram:3": "Bob", "telegram:4": "", "telegram:5": ""}
	for jid, want := range map[string]string{"telegram:1": "1", "telegram:2": "2", "slack:U1": "", "telegram:3": "", "telegram:4": "", "telegram:6": ""} {
		if got := titles.Apart(jid); got != want {
			t.Errorf("%s: %q, want %q", jid, got, want)
		}
	}
}
