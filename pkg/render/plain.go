package render

import "strings"

// plain writes text without markup: nothing is closed, and nothing escaped.
type plain struct {
	bullet string // replaces "-"
	quote  string // prefix of a quoted line
}

func (p plain) next(prev, l *line) string {
	var b strings.Builder
	if prev != nil {
		b.WriteByte('\n')
	}
	b.WriteString(p.prefix(l))
	for _, s := range l.spans {
		b.WriteString(s.text)
	}
	return b.String()
}

func (p plain) prefix(l *line) string {
	quote := ""
	if l.quote != 0 {
		quote = p.quote
	}
	return quote + indent(l, p.bullet)
}

func (p plain) end(*line) string { return "" }

func (p plain) size(text string) int { return UTF16Len(text) }

// indent returns the prefix of a line in a list.
func indent(l *line, bullet string) string {
	s := strings.Repeat(" ", l.indent)
	if l.bullet == "" {
		return s
	}
	return s + strings.ReplaceAll(l.bullet, "-", bullet) + " "
}
