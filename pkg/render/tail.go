package render

import (
	"strings"
	"unicode/utf8"
)

// tailMark begins a text whose beginning is left out.
const tailMark = "…\n"

// TelegramTail renders the end of a text, at least half of what fits into one message; all of it if that fits. The
// limit is in UTF-16 units. The result is empty if nothing of the text is visible.
func TelegramTail(markdown string, limit int) Formatted {
	parts, whole := splitTail(parse(markdown, telegramLink), limit, telegram{})
	var out Formatted
	if !whole {
		out.Text = tailMark
	}
	for i := range parts {
		if i > 0 {
			out.Text += "\n"
		}
		part, at := format(parts[i]), UTF16Len(out.Text)
		for _, e := range part.Entities {
			e.Offset += at
			out.Entities = append(out.Entities, e)
		}
		out.Text += part.Text
	}
	const room = 10 // for those of the text beside it
	for !entitiesFit(out.Entities, room) {
		out.Entities = out.Entities[:len(out.Entities)*3/4]
	}
	return out
}

// DiscordTail is TelegramTail for Discord. The limit is in characters.
func DiscordTail(markdown string, limit int) string {
	return writeTail(parse(markdown, discordLink(halfOf(limit))), limit, discord{})
}

// SlackTail is TelegramTail for Slack. The limit is in characters.
func SlackTail(markdown string, limit int) string {
	return writeTail(parse(markdown, slackLink(halfOf(limit))), limit, slack{})
}

func writeTail(doc []line, limit int, w writer) string {
	parts, whole := splitTail(doc, limit, w)
	texts := make([]string, len(parts))
	for i := range parts {
		texts[i] = writePart(parts[i], w)
	}
	text := strings.Join(texts, "\n")
	if !whole {
		text = tailMark + text
	}
	return text
}

// halfOf is the limit of each of the two parts that are shown of a longer text with much markup.
func halfOf(limit int) int { return max((limit-len(tailMark)-1)/2, minLimit) }

// splitTail returns the end of a document in one or two parts that fit into one message, or all of it as one part if
// that fits. Text too far from the end is not even measured: a text is rendered again each time it has grown.
func splitTail(doc []line, limit int, w writer) (parts [][]line, whole bool) {
	end, whole := lastLines(doc, limit)
	if whole {
		if parts = split(end, max(limit, minLimit), w); len(parts) <= 1 {
			return parts, true
		}
	}
	end, _ = lastLines(end, limit*3/4) // the rest is for its markup
	if parts = split(end, max(limit-len(tailMark), minLimit), w); len(parts) > 1 {
		parts = split(end, halfOf(limit), w)
	}
	return parts[max(0, len(parts)-2):], false
}

// lastLines returns the last n characters of a document, or a few words less, and whether that is all of it.
func lastLines(doc []line, n int) (end []line, whole bool) {
	for i := len(doc) - 1; i >= 0; i-- {
		spans := doc[i].spans
		for k := len(spans) - 1; k >= 0; k-- {
			size := runeLen(spans[k].text)
			if size > n {
				first := doc[i].from(cutPoint{span: k, offset: wordAfter(spans[k].text, size-n)})
				return append([]line{first}, doc[i+1:]...), false
			}
			n -= size
		}
	}
	return doc, true
}

// wordAfter returns where the first word begins that is after some runes of a text and near to them, else where the
// next rune does.
func wordAfter(text string, runes int) int {
	const near = 100
	at := 0
	for ; runes > 0; runes-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	if blank := strings.IndexByte(text[at:min(len(text), at+near)], ' '); blank >= 0 {
		return at + blank
	}
	return at
}
