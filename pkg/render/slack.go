package render

import (
	"strings"
	"unicode"
)

// slack writes mrkdwn. It has no escapes for its marks: where a line has enough of them to make a
// span, gaps prevent that, and a backtick is replaced by a character that looks like it. There are
// no spoilers.
type slack struct{}

func (slack) size(text string) int { return runeLen(text) }

func (slack) next(prev, l *line) string {
	var b strings.Builder
	if prev != nil {
		if prev.fence != l.fence {
			b.WriteString(slack{}.end(prev))
		}
		b.WriteByte('\n')
	}
	if l.fence != nil {
		if prev == nil || prev.fence != l.fence {
			b.WriteString("```\n")
		}
		for _, s := range l.spans {
			b.WriteString(slackEscape.Replace(breakFences(s.text)))
		}
		return b.String()
	}
	if l.quote != 0 {
		b.WriteString("> ")
	}
	b.WriteString(indent(l, "•"))
	spans := slackSpans(l.spans)
	b.WriteString(writeSpans(spans, slackSyntax{pairs: pairs(spans)}))
	return b.String()
}

// end closes a code block, which can't be part of a quote.
func (slack) end(last *line) string {
	if last.fence == nil {
		return ""
	}
	return "\n```"
}

var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// breakFences keeps code from ending its own block.
func breakFences(text string) string {
	return strings.ReplaceAll(text, "``", "`"+gap+"`")
}

// slackSpans moves links inside other marks: Slack shows marks inside a link as they are written. It
// leaves out marks that Slack does not have.
func slackSpans(spans []span) []span {
	var out []span
	for _, s := range spans {
		var marks, links []mark
		for _, m := range s.marks {
			switch {
			case m.kind == link:
				links = append(links, m)
			case m.kind != spoiler:
				marks = append(marks, m)
			}
		}
		out = appendSpan(out, s.text, append(marks, links...))
	}
	return out
}

// pairs returns the characters of which a line has enough to begin a span and end it.
func pairs(spans []span) string {
	out := ""
	for _, c := range []string{"*", "_", "~", "`"} {
		n := 0
		for _, s := range spans {
			n += strings.Count(s.text, c)
			for _, m := range s.marks {
				if open, _ := (slackSyntax{}).markers(m, 0); open == c {
					n += 2
				}
			}
		}
		if n > 1 {
			out += c
		}
	}
	return out
}

type slackSyntax struct {
	pairs string // the characters that have to be kept from being markup
}

func (slackSyntax) markers(m mark, _ rune) (string, string) {
	switch m.kind {
	case bold, heading:
		return "*", "*"
	case italic:
		return "_", "_"
	case strike:
		return "~", "~"
	case code:
		return "`", "`"
	case link:
		if !m.bare { // else Slack finds it by itself
			return "<" + slackAddress.Replace(m.url) + "|", ">"
		}
	}
	return "", ""
}

var slackAddress = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C")

func (syn slackSyntax) text(s span, before, after rune, first bool) string {
	var b strings.Builder
	verbatim := has(s.marks, code) || has(s.marks, link)
	walk(s.text, before, after, func(i int, prev, r, next rune) {
		switch {
		case r == '>' && first && strings.TrimSpace(s.text[:i]) == "":
			b.WriteString(gap + "&gt;")
		case r == '&', r == '<', r == '>':
			b.WriteString(slackEscape.Replace(string(r)))
		case !strings.ContainsRune(syn.pairs, r):
			b.WriteRune(r)
		case r == '`':
			b.WriteRune('ˋ')
		case verbatim:
			b.WriteRune(r)
		default:
			b.WriteString(syn.literal(prev, r, next))
		}
	})
	return b.String()
}

// literal keeps a character from opening and closing a span. Within a word it does neither, nor
// between blanks. Two in a row have one gap between them.
func (syn slackSyntax) literal(prev, r, next rune) string {
	if isWordRune(prev) && isWordRune(next) {
		return string(r)
	}
	s := string(r)
	if prev != 0 && !unicode.IsSpace(prev) && (prev == '`' || !strings.ContainsRune(syn.pairs, prev)) {
		s = gap + s
	}
	if next != 0 && !unicode.IsSpace(next) {
		s += gap
	}
	return s
}

// needsGap: spans begin and end at the edges of words only.
func (slackSyntax) needsGap(before, after rune, from, to piece) bool {
	switch {
	case from == words && to == opener:
		return isWordRune(before)
	case from == closer && to == words, from == closer && to == codeText:
		return isWordRune(after)
	}
	return before == after && from != words && to != words
}

// slackLink keeps the links that leave half of a part to their text.
func slackLink(limit int) keepLink {
	return func(address, _ string) bool {
		return webLink(address) && runeLen(slackAddress.Replace(address)) <= limit/2
	}
}
