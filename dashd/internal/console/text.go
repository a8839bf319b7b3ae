package console

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"arizuko/pkg/adapter/plaintext"
)

// maxExcerpt is how much of a message the list of chats shows, in characters.
const maxExcerpt = 120

// Excerpt is the beginning of a text, on one line.
func Excerpt(text string) string {
	text = strings.TrimSpace(text)
	start := strings.ToValidUTF8(text[:min(len(text), 4*(maxExcerpt+1))], "") // no character has more than 4 bytes
	line := []rune(strings.Join(strings.Fields(start), " "))
	if len(line) > maxExcerpt {
		return string(line[:maxExcerpt]) + "…"
	}
	return string(line)
}

// line is the beginning of a foreign text, on one line without characters that steer a screen.
func line(text string) string { return Excerpt(plaintext.Line(text)) }

// cutText cuts a text after a number of characters.
func cutText(text string, most int) string {
	runes := []rune(printable(text[:min(len(text), 4*(most+1))]))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

// printable is a text of several lines without characters that steer a screen.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}
