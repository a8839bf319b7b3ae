package inbound

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyText is made of letters, blanks and signs, as Slack sends them: escaped.
func anyText() *rapid.Generator[string] {
	return rapid.Map(rapid.StringOf(rapid.RuneFrom([]rune("ab @/,(\n\u00a0é漢😀|#!^&<>"))), func(s string) string {
		return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
	})
}

// TestTextWithoutMarkup comes out as it was typed.
func TestTextWithoutMarkup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		got, addressed := plain(text, us, names{})
		if want := unescape.Replace(text); got != want || addressed {
			t.Fatalf("%q became %q, addressed %t", text, got, addressed)
		}
	})
}

// TestOwnMentionIsCut from between any two texts, and takes nothing but blanks along.
func TestOwnMentionIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyText().Draw(t, "before"), anyText().Draw(t, "after")
		got, addressed := plain(before+"<@UBOT>"+after, us, names{})
		if !addressed {
			t.Fatal("not addressed")
		}
		typed := unescape.Replace(before) + unescape.Replace(after)
		if dense(got) != dense(typed) || len(got) > len(typed) {
			t.Fatalf("%q and %q became %q", before, after, got)
		}
	})
}

// dense is a text without blanks.
func dense(s string) string {
	return strings.NewReplacer(" ", "", "\n", "", "\u00a0", "").Replace(s)
}
