package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	// maxText is the longest text that is read as markdown, in bytes.
	maxText = 64 << 10
	// maxDelimiters is how many characters that may be markup stand between two empty lines.
	// The parser's time grows with their square: with so many it takes about 5 ms.
	maxDelimiters = 2000
	// maxDepth is how deep elements stand in each other. Browsers flatten what is deeper than 512.
	maxDepth = 100
	// maxCells bounds tables: one short line makes as many cells as the header has.
	maxCells = 10_000
)

// takesLong tells, without parsing, which texts would keep the parser busy.
func takesLong(source string) bool {
	if len(source) > maxText {
		return true
	}
	delimiters := 0
	for line := range strings.Lines(source) {
		if strings.TrimSpace(line) == "" {
			delimiters = 0
			continue
		}
		for i := range len(line) {
			if strings.IndexByte("*_~`[]()<|", line[i]) >= 0 {
				delimiters++
			}
		}
		if delimiters > maxDelimiters || containers(line) > maxDepth {
			return true
		}
	}
	return false
}

// containers counts the quotes and list items that may begin with a line.
func containers(line string) int {
	prefix := line[:len(line)-len(strings.TrimLeft(line, " \t>-+*0123456789.)"))]
	n := strings.Count(prefix, ">")
	for _, marker := range []string{"- ", "+ ", "* ", ". ", ") ", "-\t", "+\t", "*\t", ".\t", ")\t"} {
		n += strings.Count(prefix, marker)
	}
	return n
}

func tooDeep(tree ast.Node) bool {
	depth, deep := 0, false
	// The walk fails only with what this function returns.
	_ = ast.Walk(tree, func(_ ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		if depth++; depth > maxDepth {
			deep = true
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return deep
}

// wholeTables leaves as text the tables that are too large, and those with a row longer than the
// header: the cells in excess would not be shown.
type wholeTables struct{ parser.ParagraphTransformer }

func (t wholeTables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
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
