package render

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// appLink matches addresses of Telegram's own schemes, which it links by itself.
var appLink = regexp.MustCompile(`(?i)(?:tg|ton|tonsite)://`)

// PlainMentions replaces text that Telegram would take for a mention or a link to itself
// without entities, by characters that look alike. The length stays the same.
func PlainMentions(text string) string {
	text = replaceAt(text, mentions(text), len("@"), "＠")
	var schemes []int
	for _, m := range appLink.FindAllStringIndex(text, -1) {
		schemes = append(schemes, m[1]-len("://"))
	}
	return replaceAt(text, schemes, len(":"), "：")
}

// replaceAt replaces n bytes at each of some offsets in rising order.
func replaceAt(text string, offsets []int, n int, with string) string {
	for _, at := range slices.Backward(offsets) {
		text = text[:at] + with + text[at+n:]
	}
	return text
}

// mentions returns the offsets of each @ in a text that Telegram could take for the beginning of a
// mention. It takes none that follows a letter, as in mail addresses.
func mentions(text string) (offsets []int) {
	for from := 0; ; {
		i := strings.IndexByte(text[from:], '@')
		if i < 0 {
			return offsets
		}
		at := from + i
		from = at + 1
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if from < len(text) && isUsername(text[from]) && !isSettled(before) {
			offsets = append(offsets, at)
		}
	}
}

// isUsername reports whether a name of a Telegram user can have c in it.
func isUsername(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// isSettled reports whether r is a letter or digit by any version of Unicode that Telegram may have.
func isSettled(r rune) bool {
	return r == '_' || r < 0x530 && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// keeps replaces characters that Telegram would not show: it makes one space of a tab, and removes the ring of U+030A,
// which is shown if it is one character with its letter.
var keeps = strings.NewReplacer("\t", "    ", "a\u030a", "å", "A\u030a", "Å", "u\u030a", "ů", "U\u030a", "Ů")

// telegramTexts returns the texts of a line's spans, with a gap in each mention and each link to
// Telegram itself. Code, addresses and the text of links stay as they are: entities cover them,
// and Telegram looks for mentions beside those only.
func telegramTexts(l *line) []string {
	texts := make([]string, len(l.spans))
	var all strings.Builder
	for i, s := range l.spans {
		texts[i] = keeps.Replace(s.text)
		all.WriteString(texts[i])
	}
	if l.fence != nil {
		return texts
	}
	gaps := telegramGaps(all.String())
	start := 0
	for i, s := range l.spans {
		if len(gaps) == 0 {
			break
		}
		s.text = texts[i]
		texts[i], gaps = withGaps(s, start, gaps)
		start += len(s.text)
	}
	return texts
}

// telegramGaps returns the offsets in a text before which a gap has to be, in rising order.
func telegramGaps(text string) (offsets []int) {
	for _, at := range mentions(text) {
		offsets = append(offsets, at+len("@"))
	}
	if strings.Contains(text, "://") {
		for _, m := range appLink.FindAllStringIndex(text, -1) {
			offsets = append(offsets, m[1]-len("//"))
		}
		slices.Sort(offsets)
	}
	return offsets
}

// withGaps returns the text of a span that begins at an offset of its line with those gaps that are
// inside it or at its end, and the others. A span that an entity covers takes none; the gap at its
// end is left to the next one.
func withGaps(s span, start int, gaps []int) (text string, rest []int) {
	var b strings.Builder
	from, taken := 0, !covered(s)
	for len(gaps) > 0 {
		at := gaps[0] - start
		if at > len(s.text) || !taken && at == len(s.text) {
			break
		}
		if taken {
			b.WriteString(s.text[from:at])
			b.WriteString(gap)
			from = at
		}
		gaps = gaps[1:]
	}
	b.WriteString(s.text[from:])
	return b.String(), gaps
}

// covered reports whether an entity that keeps mentions away covers a span.
func covered(s span) bool {
	for _, m := range telegramMarks(s) {
		if m.kind == code || m.kind == link {
			return true
		}
	}
	return bareLink(s)
}
