package render

import "strings"

// plain writes text without markup: nothing is closed, and nothing escaped.
type plain struct{}

func (plain) next(prev, l *line) string {
	var b strings.Builder
	if prev != nil {
		b.WriteByte('\n')
	}
	if l.quote != 0 {
		b.WriteString("> ")
	}
	b.WriteString(indent(l, "-"))
	for _, s := range l.spans {
		b.WriteString(s.text)
	}
	return b.String()
}

func (plain) end(*line) string { return "" }

func (plain) size(text string) int { return UTF16Len(text) }

// indent returns the prefix of a line in a list.
func indent(l *line, bullet string) string {
	s := strings.Repeat(" ", l.indent)
	if l.bullet == "" {
		return s
	}
	return s + strings.ReplaceAll(l.bullet, "-", bullet) + " "
}
