package render

import (
	"regexp"
	"strings"
	"unicode"
)

// discord writes Discord's markdown, which escapes with backslashes. These don't break
// a mention: gaps do, in code too.
type discord struct{}

func (discord) size(text string) int { return runeLen(text) }

func (discord) next(prev, l *line) string {
	var b strings.Builder
	if prev != nil {
		if prev.fence != l.fence {
			b.WriteString(discord{}.end(prev))
		}
		b.WriteByte('\n')
	}
	quote := discordQuote(l)
	if l.fence != nil {
		if prev == nil || prev.fence != l.fence {
			b.WriteString(quote + "```" + l.fence.language + "\n")
		}
		b.WriteString(quote)
		for _, s := range l.spans {
			b.WriteString(breakMentions(breakFences(s.text)))
		}
		return b.String()
	}
	b.WriteString(quote)
	b.WriteString(indent(l, "-"))
	if level := headingLevel(l); level > 0 {
		b.WriteString(strings.Repeat("#", level) + " ")
	}
	b.WriteString(writeSpans(l.spans, discordSyntax{}))
	return b.String()
}

func (discord) end(last *line) string {
	if last.fence == nil {
		return ""
	}
	return "\n" + discordQuote(last) + "```"
}

func discordQuote(l *line) string {
	if l.quote == 0 {
		return ""
	}
	return "> "
}

// maxDiscordHeading is the deepest heading that Discord has. Deeper ones are bold.
const maxDiscordHeading = 3

func headingLevel(l *line) int {
	if len(l.spans) == 0 || !has(l.spans[0].marks, heading) || l.spans[0].marks[0].level > maxDiscordHeading {
		return 0
	}
	return l.spans[0].marks[0].level
}

var (
	massMention  = regexp.MustCompile(`(?i)@(everyone|here)`)
	mentionStart = strings.NewReplacer("<@", "<@"+gap)
)

// breakMentions breaks the mentions in a text.
func breakMentions(text string) string {
	if !strings.Contains(text, "@") {
		return text
	}
	return massMention.ReplaceAllString(mentionStart.Replace(text), "@"+gap+"$1")
}

type discordSyntax struct{}

func (discordSyntax) markers(m mark, after rune) (string, string) {
	switch m.kind {
	case bold:
		return "**", "**"
	case heading:
		if m.level > maxDiscordHeading {
			return "**", "**"
		}
	case italic:
		// An underscore does not end anything before a letter.
		if isWord(after) {
			return "*", "*"
		}
		return "_", "_"
	case strike:
		return "~~", "~~"
	case spoiler:
		return "||", "||"
	case link:
		if !m.bare {
			return "[", "](" + discordAddress(m.url) + ")"
		}
	}
	return "", ""
}

var discordURL = strings.NewReplacer("*", "%2A", "|", "%7C", "`", "%60", `\`, "%5C", "<", "%3C", ">", "%3E",
	"(", "%28", ")", "%29", "~~", "%7E%7E", "__", "%5F%5F")

// discordAddress escapes an address, so that nothing in it can be markup.
func discordAddress(address string) string {
	return massMention.ReplaceAllString(discordURL.Replace(address), "%40$1")
}

func (discordSyntax) text(s span, before, after rune, first bool) string {
	switch {
	case has(s.marks, code):
		return discordCode(s.text)
	case bareLink(s) && webAddress.MatchString(s.text):
		return discordAddress(s.text)
	}
	var b strings.Builder
	inItalic, inLink := has(s.marks, italic), has(s.marks, link)
	walk(s.text, before, after, func(i int, prev, r, next rune) {
		switch {
		case inlineMarkup(prev, r, next),
			r == ':' && appAddress(s.text[:i], s.text[i:]),
			first && lineMarkup(s.text[:i], r, next),
			inItalic && r == '_',
			inLink && r == ']':
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	})
	return breakMentions(b.String())
}

// webAddress matches the addresses that Discord links by itself.
var webAddress = regexp.MustCompile(`^https?://[^\s<]+$`)

func bareLink(s span) bool {
	return len(s.marks) > 0 && s.marks[len(s.marks)-1].bare
}

// appAddress reports whether the rest of a text is that of an address of something else than a web
// page: Discord links some of those, such as steam://.
func appAddress(text, rest string) bool {
	if !strings.HasPrefix(rest, "://") {
		return false
	}
	text = strings.ToLower(text[max(0, len(text)-len("https")):])
	return !strings.HasSuffix(text, "http") && text != "https"
}

// inlineMarkup reports whether Discord could take a rune for the beginning or end of a span, an
// emoji, a time or a link.
func inlineMarkup(prev, r, next rune) bool {
	switch r {
	case '\\', '*', '`', '~', '[':
		return true
	case '_':
		return !isWord(prev) || !isWord(next)
	case '|':
		return prev == r || next == r
	case '<':
		return next != 0 && !unicode.IsSpace(next)
	}
	return false
}

// lineMarkup reports whether a rune makes its line a quote, a heading, small or an item of a list.
func lineMarkup(before string, r, next rune) bool {
	before = strings.TrimLeft(before, " \t")
	ends := next == 0 || unicode.IsSpace(next)
	switch r {
	case '>', '#':
		return before == ""
	case '-', '+':
		return before == "" && (ends || next == '#')
	case '.', ')':
		return before != "" && strings.Trim(before, "0123456789") == "" && ends
	}
	return false
}

// discordCode puts text between more backticks than it has in a row.
func discordCode(text string) string {
	text = breakMentions(text)
	switch {
	case !strings.Contains(text, "`"):
		return "`" + text + "`"
	case strings.Contains(text, "``"):
		text = strings.ReplaceAll(text, "`", "`"+gap)
	}
	return "`` " + text + " ``"
}

func (discordSyntax) needsGap(before, after rune, _, _ piece) bool {
	return before == after && strings.ContainsRune("*_~|`", before)
}

// discordLink keeps the links that leave room for their text. Discord shows no link whose text
// looks like an address, or has unbalanced or nested brackets.
func discordLink(limit int) keepLink {
	return func(address, label string) bool {
		if !pageLink(address) {
			return false
		}
		shown := label == address || !strings.Contains(label, "://") && balanced(label)
		return shown && runeLen(discordAddress(address)) <= limit/2
	}
}

// balanced reports whether the brackets in a text come in pairs that are not nested.
func balanced(text string) bool {
	open := 0
	for _, r := range text {
		switch r {
		case '[':
			open++
		case ']':
			open--
		}
		if open < 0 || open > 1 {
			return false
		}
	}
	return open == 0
}
