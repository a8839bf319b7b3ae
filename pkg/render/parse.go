package render

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"arizuko/pkg/mdbounds"
)

// markdownParser is never changed and safe for concurrent use.
var markdownParser = newParser()

// newParser knows CommonMark, the tables, strikethrough, task lists and bare links of GitHub,
// and spoilers. Raw HTML and link reference definitions are not among its parsers: they make
// text disappear.
func newParser() parser.Parser {
	blocks := replace(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser(), nil)
	for i, b := range blocks {
		if b.Priority == headingPriority {
			blocks[i].Value = shortHeadings{parser.NewATXHeadingParser()}
		}
	}
	inlines := replace(parser.DefaultInlineParsers(), parser.NewRawHTMLParser(), nil)
	inlines = replace(inlines, parser.NewEmphasisParser(), emphasis{parser.NewEmphasisParser()})
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(blocks...),
			parser.WithInlineParsers(append(inlines, util.Prioritized(spoilers{}, 500))...),
			parser.WithParagraphTransformers(
				util.Prioritized(bounded{}, 100),
				util.Prioritized(mdbounds.WholeTables{ParagraphTransformer: extension.NewTableParagraphTransformer()}, 200)),
			parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
		)),
		goldmark.WithExtensions(extension.Strikethrough, extension.TaskList, extension.Linkify),
	).Parser()
}

// headingPriority is where the parser of # headings stands among the default ones.
const headingPriority = 600

// replace swaps a parser for another, or takes it out.
func replace(all []util.PrioritizedValue, old, replacement any) []util.PrioritizedValue {
	var kept []util.PrioritizedValue
	for _, v := range all {
		switch {
		case v.Value != old:
			kept = append(kept, v)
		case replacement != nil:
			kept = append(kept, util.Prioritized(replacement, v.Priority))
		}
	}
	return kept
}

// parse reads a text into a document. keep decides which links stay links.
func parse(markdown string, keep keepLink) []line {
	b := builder{source: []byte(clean(markdown)), keep: keep}
	if takesLong(string(b.source)) {
		for l := range strings.Lines(string(b.source)) {
			b.verbatim(strings.TrimSuffix(l, "\n"))
		}
		return b.lines
	}
	b.blocks(markdownParser.Parse(text.NewReader(b.source)))
	return b.lines
}

// clean makes every line end a \n, and replaces bytes that are no UTF-8 and control characters.
func clean(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(s)
	return strings.Map(printable, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

func printable(r rune) rune {
	switch {
	case r == '\n', r == '\t':
		return r
	case r < ' ', r >= 0x7f && r < 0xa0, r == 0xfffe, r == 0xffff:
		return utf8.RuneError
	}
	return r
}

// emphasis leaves sums as they are: a single star between letters or digits, as in 2*3*4 or
// a*b, and any number of them between digits, as in 2**3.
type emphasis struct{ parser.InlineParser }

func (e emphasis) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, _ := block.PeekLine()
	n, after := run(line)
	if line[0] == '*' && isWord(before) && isWord(after) && (n == 1 || isDigit(before) && isDigit(after)) {
		return literal(block, n)
	}
	return e.InlineParser.Parse(parent, block, pc)
}

// spoilers parses ||hidden text||. Between letters or digits the bars are an operator.
type spoilers struct{}

func (spoilers) Trigger() []byte { return []byte{'|'} }

func (spoilers) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	n, after := run(line)
	if n != 2 || isWord(before) && isWord(after) {
		return literal(block, n)
	}
	d := parser.ScanDelimiter(line, before, 2, bars{})
	d.Segment = segment.WithStop(segment.Start + n)
	block.Advance(n)
	pc.PushDelimiter(d)
	return d
}

type bars struct{}

func (bars) IsDelimiter(b byte) bool                             { return b == '|' }
func (bars) CanOpenCloser(opener, closer *parser.Delimiter) bool { return opener.Char == closer.Char }
func (bars) OnMatch(int) ast.Node                                { return &spoilerNode{} }

type spoilerNode struct{ ast.BaseInline }

var kindSpoiler = ast.NewNodeKind("Spoiler")

// Kind implements ast.Node.
func (*spoilerNode) Kind() ast.NodeKind { return kindSpoiler }

// Dump implements ast.Node.
func (n *spoilerNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// run counts how often the first byte of a line is repeated, and tells what follows.
func run(line []byte) (n int, after rune) {
	for n < len(line) && line[n] == line[0] {
		n++
	}
	after, _ = utf8.DecodeRune(line[n:])
	return n, after
}

func literal(block text.Reader, n int) ast.Node {
	_, segment := block.PeekLine()
	block.Advance(n)
	return ast.NewTextSegment(segment.WithStop(segment.Start + n))
}

// isWord tells ASCII letters and digits.
func isWord(r rune) bool {
	return isDigit(r) || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }
