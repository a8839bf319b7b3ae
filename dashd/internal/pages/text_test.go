package pages

import (
	"strings"
	"testing"

	"arizuko/pkg/msg"
)

func TestExcerpt_LongText_CutAt120Characters(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		" a\n\n b\t":                       "a b",
		strings.Repeat("é", 120):           strings.Repeat("é", 120),
		strings.Repeat("é", 121):           strings.Repeat("é", 120) + "…",
		strings.Repeat("😀", 500):           strings.Repeat("😀", 120) + "…",
		strings.Repeat("\n", 999) + "late": "late",
		"a\xffb":                           "ab",
		"x" + strings.Repeat("😀", 119) + "\xf0\x9f": "x" + strings.Repeat("😀", 119),
	} {
		if got := Excerpt(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestContent_Poll_IsNoJSON(t *testing.T) {
	poll := `{"question":"When?","options":["now","later"]}`
	for _, tt := range []struct {
		m    msg.Message
		want string
	}{
		{msg.Message{Direction: msg.Out, Kind: msg.KindPoll, Content: poll}, "When? now / later"},
		{msg.Message{Direction: msg.Out, Kind: msg.KindPoll, Content: "no poll"}, "no poll"},
		{msg.Message{Direction: msg.Out, Kind: msg.KindMessage, Content: poll}, poll},
		{msg.Message{Direction: msg.In, Content: "hello"}, "hello"},
	} {
		if got := Content(&tt.m); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
