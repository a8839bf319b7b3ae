// Package render turns agents' markdown into the markup of chat platforms, in parts
// that are not longer than the platform takes, and into HTML for the web chat. Agents repeat what
// strangers wrote, so their text is hostile: text that is not markup stays text and mentions
// no user, links lead to web pages and mail addresses only, raw HTML is text.
//
// For chats a text is parsed once into a document of lines and spans that knows no platform. It
// is cut between blocks, else between lines, sentences, words or characters, and each platform
// writes the pieces its own way: fences, quotes and spans that are open where a part ends begin
// again in the next one. Blanks at a cut are dropped.
//
// HTML is written from the tree of the same parser, without the extras for chats: arithmetic with
// stars stays text there, and ||text|| is a spoiler.
//
// All functions are pure and safe for concurrent use. For chats the result is empty if nothing of
// the text is visible, and no part is empty. Limits below 64 count as 64.
package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// minLimit leaves room for the markup around a single character.
const minLimit = 64

// Formatted is a text with its formatting as entities.
type Formatted struct {
	Text     string
	Entities []Entity // by offset, the outer ones first
}

// Entity is a MessageEntity of the Telegram Bot API.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"` // in UTF-16 units
	Length   int    `json:"length"` // in UTF-16 units
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
}

// Telegram renders text with entities, to be sent without a parse_mode. The limit is in UTF-16
// units: 4096 for a message, 1024 for a caption. No part has more entities than Telegram takes.
func Telegram(markdown string, limit int) []Formatted {
	limit = max(limit, minLimit)
	var out []Formatted
	for _, part := range split(parse(markdown, telegramLink), limit, telegram{}) {
		out = append(out, formatAll(part)...)
	}
	return out
}

// Slack renders mrkdwn, to be sent without link_names and parse. The limit is in characters;
// Slack advises 4000.
func Slack(markdown string, limit int) []string {
	limit = max(limit, minLimit)
	return write(parse(markdown, slackLink(limit)), limit, slack{})
}

// Discord renders Discord's markdown. The limit is in characters, code points as Discord counts
// them: 2000.
func Discord(markdown string, limit int) []string {
	limit = max(limit, minLimit)
	return write(parse(markdown, discordLink(limit)), limit, discord{})
}

// Plain renders text that needs no markup to be read. The limit is in UTF-16 units.
func Plain(markdown string, limit int) []string {
	limit = max(limit, minLimit)
	return write(parse(markdown, noLink), limit, plain{})
}

// Blank reports whether nothing of a text is visible in a chat, as of backticks with nothing between them or of blanks
// without a width.
func Blank(markdown string) bool {
	if first, _ := utf8.DecodeRuneInString(strings.TrimSpace(markdown)); unicode.Is(unicode.Latin, first) {
		return false // it begins with a word: many texts need not be parsed. Letters of other scripts may be blank
	}
	return len(Plain(markdown, minLimit)) == 0
}

// A writer writes lines for a platform.
type writer interface {
	// next returns the text that a line adds to a part that ends with prev, nil if it is empty.
	next(prev, l *line) string
	// end returns the text that closes the last line of a part.
	end(last *line) string
	// size measures a text in the platform's unit.
	size(text string) int
}

func write(doc []line, limit int, w writer) []string {
	var out []string
	for _, part := range split(doc, limit, w) {
		out = append(out, writePart(part, w))
	}
	return out
}

func writePart(part []line, w writer) string {
	var b strings.Builder
	var prev *line
	for i := range part {
		b.WriteString(w.next(prev, &part[i]))
		prev = &part[i]
	}
	b.WriteString(w.end(prev))
	return b.String()
}

// UTF16Len is the length of a text in UTF-16 units, in which Telegram counts.
func UTF16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

func runeLen(s string) int { return utf8.RuneCountInString(s) }
