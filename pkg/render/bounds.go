package render

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	// maxWork bounds the sum, over a text's paragraphs, of the squares of how many characters
	// in each may be markup: the parser's time grows with them. This many take about 0.1 s.
	maxWork = 50_000_000
	// maxDepth is how many quotes and list items may begin in one line, and how many elements of
	// HTML may be nested.
	maxDepth = 100
	// maxHeading is the longest line that may be a heading, in bytes.
	maxHeading = 1000
	// maxCells bounds tables: one short line makes as many cells as the header has.
	maxCells = 10_000
)

// limits are the largest text that is parsed.
type limits struct {
	bytes int
	// delimiters counts the characters between two empty lines that may be markup. The parser's
	// time grows with their square. 0 means no limit: workLimit excludes single paragraphs instead.
	delimiters int
}

var (
	chatLimits = limits{bytes: 256 << 10}
	htmlLimits = limits{bytes: 64 << 10, delimiters: 2000} // with so many it takes about 5 ms
)

// exceeded finds, without parsing, the texts that would keep the parser busy.
func (l limits) exceeded(source string) bool {
	if len(source) > l.bytes {
		return true
	}
	delimiters := 0
	for line := range strings.Lines(source) {
		if containers(line) > maxDepth {
			return true
		}
		if l.delimiters == 0 {
			continue
		}
		if strings.TrimSpace(line) == "" {
			delimiters = 0
			continue
		}
		if delimiters += countAny(line, "*_~`[]()<|"); delimiters > l.delimiters {
			return true
		}
	}
	return false
}

// containers counts the quotes and list items that may begin with a line: the parser's time
// grows with their square.
func containers(line string) int {
	prefix := line[:len(line)-len(strings.TrimLeft(line, " \t>-+*0123456789.)"))]
	n := strings.Count(prefix, ">")
	for _, marker := range []string{"- ", "+ ", "* ", ". ", ") ", "-\t", "+\t", "*\t", ".\t", ")\t"} {
		n += strings.Count(prefix, marker)
	}
	return n
}

func countAny[T string | []byte](s T, chars string) int {
	n := 0
	for i := range len(s) {
		if strings.IndexByte(chars, s[i]) >= 0 {
			n++
		}
	}
	return n
}

// shortHeadings leaves lines that are too long for a heading to the paragraphs.
type shortHeadings struct{ parser.BlockParser }

func (h shortHeadings) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if line, _ := reader.PeekLine(); len(line) > maxHeading {
		return nil, parser.NoChildren
	}
	return h.BlockParser.Open(parent, reader, pc)
}

// workLimit leaves as text the paragraphs that would exceed maxWork.
type workLimit struct{}

var workKey = parser.NewContextKey()

func (workLimit) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	n := 0
	for i := range node.Lines().Len() {
		segment := node.Lines().At(i)
		line := segment.Value(reader.Source())
		n += countAny(line, "*_~`[]()<!") + bytes.Count(line, []byte("||"))
	}
	done, _ := pc.Get(workKey).(int)
	if done += n * n; done <= maxWork {
		pc.Set(workKey, done)
		return
	}
	raw := &verbatimNode{}
	raw.SetLines(node.Lines())
	raw.SetPos(node.Pos())
	node.Parent().ReplaceChild(node.Parent(), node, raw)
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

// verbatimNode is a paragraph in which nothing is markup.
type verbatimNode struct{ ast.BaseBlock }

var kindVerbatim = ast.NewNodeKind("Verbatim")

// Kind implements ast.Node.
func (*verbatimNode) Kind() ast.NodeKind { return kindVerbatim }

// IsRaw implements ast.Node.
func (*verbatimNode) IsRaw() bool { return true }

// Dump implements ast.Node.
func (n *verbatimNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }
