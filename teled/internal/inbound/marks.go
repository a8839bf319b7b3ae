package inbound

import (
	"strings"

	"arizuko/pkg/adapter/plaintext"
	"arizuko/teled/internal/telegramapi"
)

// marksOf are the marks of Markdown around words whose look is part of their meaning: code, quotations, and words that
// are crossed out. The words end where rest begins.
func marksOf(e *telegramapi.MessageEntity, words, rest string, from int) []plaintext.Change {
	before, after := "", ""
	switch e.Type {
	case telegramapi.EntityStrikethrough:
		before, after = "~~", "~~"
	case telegramapi.EntityCode:
		before = fence("`", words)
		after = before
	case telegramapi.EntityPre:
		after = fence("```", words)
		before, after = after+plaintext.Line(e.Language)+"\n", "\n"+after
	case telegramapi.EntityBlockquote, telegramapi.EntityExpandable:
		return quotation(words, rest, from)
	default:
		return nil
	}
	to := from + len(words)
	return []plaintext.Change{{From: from, To: from, Insert: before}, {From: to, To: to, Insert: after}}
}

// quotation marks each line, and ends the quotation with an empty one: Markdown counts the next line as part of it
// otherwise.
func quotation(words, rest string, from int) (all []plaintext.Change) {
	for line := range strings.Lines(words) {
		all = append(all, plaintext.Change{From: from, To: from, Insert: "> "})
		from += len(line)
	}
	if strings.HasPrefix(rest, "\n") && !strings.HasPrefix(rest, "\n\n") {
		all = append(all, plaintext.Change{From: from, To: from, Insert: "\n"})
	}
	return all
}

// fence is a row of backticks that is longer than any in the code.
func fence(shortest, code string) string {
	for strings.Contains(code, shortest) {
		shortest += "`"
	}
	return shortest
}
