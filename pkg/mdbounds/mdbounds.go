// Package mdbounds keeps markdown that strangers write from keeping goldmark busy, and tables from
// losing what stands in them.
package mdbounds

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// maxCells bounds tables: one short line makes as many cells as the header has.
const maxCells = 10_000

// Containers counts the quotes and list items that may begin with a line: the parser's time
// grows with their square.
func Containers(line string) int {
	prefix := line[:len(line)-len(strings.TrimLeft(line, " \t>-+*0123456789.)"))]
	n := strings.Count(prefix, ">")
	for _, marker := range []string{"- ", "+ ", "* ", ". ", ") ", "-\t", "+\t", "*\t", ".\t", ")\t"} {
		n += strings.Count(prefix, marker)
	}
	return n
}

// WholeTables leaves as text the tables that are too large, and those with a row longer than the
// header: the cells in excess would not be shown.
type WholeTables struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (t WholeTables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, columns := node.Lines(), 0
	for i := range lines.Len() {
		line := lines.At(i)
		row := strings.TrimSpace(string(line.Value(reader.Source())))
		n := cells(row)
		switch {
		case columns > 0 && n > columns:
			return
		case columns == 0 && i > 0 && strings.Trim(row, "-:| \t") == "":
			columns = n
		}
	}
	if columns*lines.Len() <= maxCells {
		t.ParagraphTransformer.Transform(node, reader, pc)
	}
}

func cells(row string) int {
	row = strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|")
	return 1 + strings.Count(row, "|") - strings.Count(row, `\|`)
}
