package emoji

import (
	"strings"
	"testing"
)

func TestTelegram(t *testing.T) {
	for given, want := range map[string]string{
		"👍": "👍", "👍🏽": "👍", "❤️": "❤", "❤": "❤", "🤷‍♂️": "🤷‍♂", "⚡️": "⚡", "✅": "👍", "✔️": "👍", "❌": "👎", "🚀": "🔥",
		"🍕": "", "": "", "x": "", "👍👍": "",
	} {
		if got, same := Telegram(given); got != want || same && withoutTone(given) != got {
			t.Errorf("%q is %q, %v, want %q", given, got, same, want)
		}
	}
}

// Each line of the table of similar emoji ends in one that Telegram accepts, and has no other of them.
func TestTelegram_Similar_EndInAccepted(t *testing.T) {
	for line := range strings.Lines(strings.TrimSpace(similar)) {
		fields := strings.Fields(line)
		for i, field := range fields {
			_, accepted := Telegram(field)
			if accepted != (i == len(fields)-1) || withoutTone(field) != field {
				t.Errorf("%s in %s", field, line)
			}
		}
	}
}

func TestFor(t *testing.T) {
	for _, tt := range []struct{ platform, given, want string }{
		{"telegram", "👍", "👍"}, {"telegram", ":thumbsup:", "👍"}, {"telegram", "🍕", ""}, {"telegram", ":party-parrot:", ""}, {"telegram", " ❤️ ", "❤️"},
		{"slack", "👍", "👍"}, {"slack", ":party-parrot:", ":party-parrot:"}, {"slack", "🦖", ""}, {"slack", ":a b:", ""}, {"slack", ":A/b:", ""}, {"slack", "", ""},
		{"discord", "🍕", "🍕"}, {"discord", "done:123", "done:123"}, {"discord", "done:", ""}, {"discord", "x/../../../users/@me", ""}, {"discord", ":tada:", "🎉"},
		{"discord", strings.Repeat("👍", 40), ""}, {"web", "1️⃣", "1️⃣"}, {"web", "<b>", ""}, {"web", "ok", ""}, {"web", "👍 ", "👍"}, {"web", "\x00👍", ""},
		{"matrix", "👍", "👍"}, {"web", "‼️", "‼️"}, {"web", "👩‍👩‍👧‍👦", "👩‍👩‍👧‍👦"}, {"web", "🇨🇿", "🇨🇿"},
	} {
		if got, err := For(tt.platform, tt.given); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s, %q: %q, %v, want %q", tt.platform, tt.given, got, err, tt.want)
		}
	}
}

func TestOtherSpelling(t *testing.T) {
	for given, want := range map[string]string{"❤": "❤️", "❤️": "❤"} {
		if got := OtherSpelling(given); got != want {
			t.Errorf("%q is %q", given, got)
		}
	}
}
