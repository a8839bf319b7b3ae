package render_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"arizuko/pkg/render"
)

func TestTail_ShortText_IsWhole(t *testing.T) {
	if got := render.DiscordTail("a **b**", 100); got != "a **b**" {
		t.Errorf("%q", got)
	}
	if got := render.TelegramTail("a **b**", 100); got.Text != "a b" || len(got.Entities) != 1 {
		t.Errorf("%+v", got)
	}
	if got := render.SlackTail("", 100) + render.TelegramTail(" ", 100).Text; got != "" {
		t.Errorf("%q of nothing", got)
	}
}

// As a text grows, its end is always shown, at least half of a message, also within code.
func TestTail_GrowingText_ShowsItsEnd(t *testing.T) {
	const limit = 400
	text := "Begin\n\n```go\n"
	for i := range 200 {
		text += fmt.Sprintf("line %d\n", i)
		last := fmt.Sprintf("line %d", i)
		tg, discord := render.TelegramTail(text, limit), render.DiscordTail(text, limit)
		if !strings.HasSuffix(tg.Text, last) || !strings.Contains(discord, last) || strings.Count(discord, "```")%2 != 0 {
			t.Fatalf("after %d lines: %q, %q", i, tg.Text, discord)
		}
		if n := render.UTF16Len(tg.Text); len(text) > limit && (n > limit || n < limit/2-20) {
			t.Fatalf("after %d lines %d units", i, n)
		}
		if e := tg.Entities[len(tg.Entities)-1]; e.Type != "pre" || e.Offset+e.Length != render.UTF16Len(tg.Text) {
			t.Fatalf("after %d lines %+v of %d", i, e, render.UTF16Len(tg.Text))
		}
	}
}

// A paragraph of any length is cut between words; text too far from its end is not measured.
func TestTail_LongParagraph_BeginsWithAWord(t *testing.T) {
	const limit = 400
	for _, n := range []int{30, 100, 1000, 5000} {
		text := strings.Repeat("some **more** words ", n) + "until the end"
		for name, got := range map[string]string{
			"telegram": render.TelegramTail(text, limit).Text, "discord": render.DiscordTail(text, limit),
			"slack": render.SlackTail(text, limit),
		} {
			rest, ok := strings.CutPrefix(got, "…\n")
			first, _, _ := strings.Cut(strings.ReplaceAll(rest, "*", ""), " ")
			if !ok || !strings.HasSuffix(got, "until the end") || len(got) < limit*2/3 ||
				first != "some" && first != "more" && first != "words" {
				t.Errorf("%s of %d: %q", name, n, got)
			}
		}
	}
}

func TestTail_AnyText_FitsAndIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"word ", "**b**", "`", "```\n", "\n", "> q", "- ", "😀", "[x](http://a.b)", "@everyone "}), 0, 400)
		text := strings.Join(words.Draw(t, "text"), "")
		limit := rapid.IntRange(200, 500).Draw(t, "limit")
		tg := render.TelegramTail(text, limit)
		if n := render.UTF16Len(tg.Text); n > limit {
			t.Fatalf("%d units of %d", n, limit)
		}
		for _, e := range tg.Entities {
			if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > render.UTF16Len(tg.Text) {
				t.Fatalf("%+v in %q", e, tg.Text)
			}
		}
		for _, got := range []string{render.DiscordTail(text, limit), render.SlackTail(text, limit)} {
			if n := utf8.RuneCountInString(got); n > limit {
				t.Fatalf("%d characters of %d", n, limit)
			}
		}
	})
}
