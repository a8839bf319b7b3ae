package render

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"arizuko/pkg/mdbounds"
)

const (
	// maxText is the longest text that is read as markdown, in bytes.
	maxText = 256 << 10
	// maxWork bounds the sum, over a text's paragraphs, of the squares of how many characters
	// in each may be markup: the parser's time grows with them. This many take about 0.1 s.
	maxWork = 50_000_000
	// maxDepth is how many quotes and list items may begin in one line.
	maxDepth = 100
	// maxHeading is the longest line that may be a heading, in bytes.
	maxHeading = 1000
)

// takesLong tells, without parsing, which texts would keep the parser busy whatever their
// paragraphs are.
func takesLong(source string) bool {
	if len(source) > maxText {
		return true
	}
	for line := range strings.Lines(source) {
		if mdbounds.Containers(line) > maxDepth {
			return true
		}
	}
	return false
}

// shortHeadings leaves lines that are too long for a heading to the paragraphs.
type shortHeadings struct{ parser.BlockParser }

func (h shortHeadings) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if line, _ := reader.PeekLine(); len(line) > maxHeading {
		return nil, parser.NoChildren
	}
	return h.BlockParser.Open(parent, reader, pc)
}

// bounded leaves as text the paragraphs for which the work is used up.
type bounded struct{}

var workKey = parser.NewContextKey()

func (bounded) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	n := 0
	for i := range node.Lines().Len() {
		segment := node.Lines().At(i)
		n += delimiters(segment.Value(reader.Source()))
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

func delimiters(line []byte) int {
	n := bytes.Count(line, []byte("||"))
	for _, c := range line {
		if strings.IndexByte("*_~`[]()<!", c) >= 0 {
			n++
		}
	}
	return n
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
