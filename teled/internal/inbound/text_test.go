package inbound

import (
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"arizuko/teled/internal/telegramapi"
)

// anyText is made of characters of one and of two units, blanks and signs.
func anyText() *rapid.Generator[string] {
	return rapid.StringOf(rapid.RuneFrom([]rune("ab @/,(\n\u00a0éж漢😀👍🏽\u200d\ufffd")))
}

// TestSpan cuts texts as a program does that keeps them in UTF-16.
func TestSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		units := utf16.Encode([]rune(text))
		offset := rapid.IntRange(-2, len(units)+2).Draw(t, "offset")
		length := rapid.IntRange(-2, len(units)+2).Draw(t, "length")
		from, to, ok := span(unitOffsets(text), offset, length)

		inside := offset >= 0 && length > 0 && offset+length <= len(units)
		if want := inside && whole(units, offset) && whole(units, offset+length); ok != want {
			t.Fatalf("%d+%d of %q: ok is %t", offset, length, text, ok)
		}
		if !ok {
			return
		}
		if want := string(utf16.Decode(units[offset : offset+length])); text[from:to] != want {
			t.Fatalf("%d+%d of %q is %q, not %q", offset, length, text, text[from:to], want)
		}
	})
}

// whole reports whether a character begins at a unit, or the text ends there.
func whole(units []uint16, at int) bool {
	return at == len(units) || units[at] < 0xDC00 || units[at] > 0xDFFF
}

// TestOtherEntitiesLeaveTheTextAlone whatever they claim to be.
func TestOtherEntitiesLeaveTheTextAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		entities := rapid.SliceOf(rapid.Custom(func(t *rapid.T) telegramapi.MessageEntity {
			return telegramapi.MessageEntity{
				Type:   rapid.SampledFrom([]string{"bold", "mention", "text_mention", "bot_command", "text_link", ""}).Draw(t, "type"),
				Offset: rapid.Int().Draw(t, "offset"), Length: rapid.IntRange(-1, 20).Draw(t, "length"),
				User: &telegramapi.User{ID: us.ID + 1},
			}
		})).Draw(t, "entities")
		if got, addressed := plain(text, entities, us); got != text || addressed {
			t.Fatalf("%q became %q, addressed %t", text, got, addressed)
		}
	})
}

// TestOwnMentionIsCut from between any two texts, and takes nothing but blanks along.
func TestOwnMentionIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyText().Draw(t, "before"), anyText().Draw(t, "after")
		entity := telegramapi.MessageEntity{Type: "mention", Offset: len(utf16.Encode([]rune(before))), Length: 12}
		got, addressed := plain(before+"@arizuko_bot"+after, []telegramapi.MessageEntity{entity}, us)
		if !addressed {
			t.Fatal("not addressed")
		}
		if want := dense(before + after); dense(got) != want {
			t.Fatalf("%q and %q became %q", before, after, got)
		}
		if len(got) > len(before+after) {
			t.Fatalf("%q and %q grew to %q", before, after, got)
		}
	})
}

// dense is a text without blanks.
func dense(s string) string {
	var out []rune
	for _, r := range s {
		if r != ' ' && r != '\n' && r != '\u00a0' {
			out = append(out, r)
		}
	}
	return string(out)
}
