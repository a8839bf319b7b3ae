package render

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	east "github.com/yuin/goldmark/extension/ast"
)

// maxPadding is how wide a column is made for its longest cell, in columns of the screen. Longer
// cells stick out.
const maxPadding = 40

// table lays a table out as text, one string for each row.
func (b *builder) table(t *east.Table) []string {
	var rows [][]string
	widths := make([]int, len(t.Alignments))
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var texts []string
		for cell := row.FirstChild(); cell != nil && len(texts) < len(widths); cell = cell.NextSibling() {
			text := b.plainText(cell, nil)
			widths[len(texts)] = max(widths[len(texts)], min(width(text), maxPadding))
			texts = append(texts, text)
		}
		rows = append(rows, texts)
	}
	var out []string
	for i, texts := range rows {
		for j, text := range texts {
			texts[j] = align(text, widths[j], t.Alignments[j])
		}
		out = append(out, strings.TrimRight(strings.Join(texts, " | "), " "))
		if i == 0 {
			out = append(out, underline(widths))
		}
	}
	return out
}

func underline(widths []int) string {
	var parts []string
	for _, w := range widths {
		parts = append(parts, strings.Repeat("-", w))
	}
	return strings.Join(parts, "-+-")
}

func align(text string, to int, a east.Alignment) string {
	space := max(0, to-width(text))
	before := 0
	switch a {
	case east.AlignRight:
		before = space
	case east.AlignCenter:
		before = space / 2
	}
	return strings.Repeat(" ", before) + text + strings.Repeat(" ", space-before)
}

// width is how many columns a text takes in a font of fixed width.
func width(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return uniseg.StringWidth(text)
		}
	}
	return len(text)
}
