package render

import (
	"strings"
	"unicode"

	east "github.com/yuin/goldmark/extension/ast"
)

// maxPadding is how wide a column is made for the sake of its longest cell, in columns of the
// screen. What is longer stands out of the table.
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

// width is how many columns a text takes in a font of fixed width, roughly.
func width(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case extends(r):
		case unicode.Is(wide, r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide are the blocks of East Asian characters and emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0xa4cf, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}
