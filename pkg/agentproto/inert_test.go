package agentproto

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestInert_Orders_AreReferences(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"plain &amp; simple":             "plain &amp; simple",
		"a @b me@x.org @\"c d\"":         "a &#64;b me&#64;x.org &#64;\"c d\"",
		"[$sk](x) costs $5":              "[&#36;sk](x) costs &#36;5",
		"/cost":                          "&#47;cost",
		"<m>/cost\n/x a\u00a0/y。/z</m>":  "<m>&#47;cost\n&#47;x a\u00a0&#47;y。&#47;z</m>",
		`<turn a="/b"/> </m>`:            `<turn a="&#47;b"/> </m>`,
		"and/or https://x/y ./a ~/b 1/2": "and/or https://x/y ./a ~/b 1/2",
		"&lt;/m&gt;":                     "&lt;/m&gt;",
		"/ // /\xff":                     "/ // /\xff",
	} {
		if got := Inert(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestInert_AnyText_HasNoOrderAndMeansTheSame(t *testing.T) {
	order := regexp.MustCompile(`[@$]|(^|[\s\pZ])/[a-zA-Z]`) // of all programs
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("@$ \"&#;/!ab\n\u3000"))))
	rapid.Check(t, func(t *rapid.T) {
		escaped := html.EscapeString(text.Draw(t, "text"))
		got := Inert(escaped)
		if order.MatchString(got) || Inert(got) != got || html.UnescapeString(got) != html.UnescapeString(escaped) {
			t.Errorf("%q became %q", escaped, got)
		}
	})
}

func BenchmarkInert(b *testing.B) {
	text := strings.Repeat("a line as users write them, with me@example.org and /a/path\n", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Inert(text)
	}
}
