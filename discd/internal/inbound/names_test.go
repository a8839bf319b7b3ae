package inbound

import "testing"

func TestOneLine(t *testing.T) {
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
		if got := oneLine(tt.in); got != tt.want {
			t.Errorf("oneLine(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
