package emoji

import (
	"strings"
	"testing"
)

func TestFromName(t *testing.T) {
	for name, want := range map[string]string{
		"+1": "👍", "thumbsup": "👍", "heart": "❤️", "one": "1️⃣", "keycap_ten": "🔟",
		"wave::skin-tone-2": "👋🏻", "wave::skin-tone-6": "👋🏿", "v::skin-tone-3": "✌🏼", "wave::skin-tone-7": "👋", "wave::skin-tone-": "👋",
		"party-parrot": ":party-parrot:", "": "::", "👍": ":👍:",
	} {
		if got := FromName(name); got != want {
			t.Errorf("FromName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestName(t *testing.T) {
	for emoji, want := range map[string]string{
		"👍": "+1", "👍🏽": "+1::skin-tone-4", "❤": "heart", "❤️": "heart", "✌🏼": "v::skin-tone-3", ":party-parrot:": "party-parrot", ":+1": "+1",
		"🦖": "", "": "", "👍👍": "", "thumbs up": "", ":a b:": "", ":": "", "::": "", "🏽": "",
	} {
		if got := Name(emoji); got != want {
			t.Errorf("Name(%q) = %q, want %q", emoji, got, want)
		}
	}
}

// TestNames_RoundTrip checks that each emoji of the table survives both conversions and is listed once.
func TestNames_RoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		fields := strings.Fields(line)
		for _, field := range fields {
			if seen[field] {
				t.Errorf("%s is listed twice", field)
			}
			seen[field] = true
		}
		if got := FromName(Name(fields[0])); got != fields[0] {
			t.Errorf("%s became %s", fields[0], got)
		}
	}
}
