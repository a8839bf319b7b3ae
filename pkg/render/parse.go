package render

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Parsers are never changed and safe for concurrent use.
var (
	htmlParser = newParser(parser.NewATXHeadingParser())
	chatParser = newParser(shortHeadings{parser.NewATXHeadingParser()},
		parser.WithInlineParsers(util.Prioritized(flanking{spoilers{}}, emphasisPriority)),
		parser.WithParagraphTransformers(util.Prioritized(workLimit{}, 100)))
)

// Where parsers are among the default ones of goldmark.
const (
	autoLinkPriority = 300
	emphasisPriority = 500
	headingPriority  = 600
)

// newParser reads CommonMark with GitHub's tables, strikethrough, task lists and bare links. Raw
// HTML and link reference definitions are left out: they make text disappear.
func newParser(headings parser.BlockParser, options ...parser.Option) parser.Parser {
	blocks := without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())
	for i, b := range blocks {
		if b.Priority == headingPriority {
			blocks[i].Value = headings
		}
	}
	inlines := without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())
	for i, p := range inlines {
		switch p.Priority {
		case emphasisPriority:
			inlines[i].Value = flanking{parser.NewEmphasisParser()}
		case autoLinkPriority:
			inlines[i].Value = webLinks{parser.NewAutoLinkParser()}
		}
	}
	tables := wholeTables{extension.NewTableParagraphTransformer()}
	options = append(options,
		parser.WithBlockParsers(blocks...),
		parser.WithInlineParsers(inlines...),
		parser.WithInlineParsers(
			util.Prioritized(arithmetic{}, emphasisPriority-1),
			util.Prioritized(tasks{extension.NewTaskCheckBoxParser()}, 0),
			util.Prioritized(flanking{extension.NewStrikethroughParser()}, emphasisPriority),
			util.Prioritized(extension.NewLinkifyParser(), 999)),
		parser.WithParagraphTransformers(util.Prioritized(tables, 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)))
	return parser.NewParser(options...)
}

func without(all []util.PrioritizedValue, left any) []util.PrioritizedValue {
	return slices.DeleteFunc(all, func(v util.PrioritizedValue) bool { return v.Value == left })
}

// parse reads a text into a document. keep decides which links stay links.
func parse(markdown string, keep keepLink) []line {
	b := builder{source: []byte(clean(markdown)), keep: keep}
	if chatLimits.exceeded(string(b.source)) {
		for l := range strings.Lines(string(b.source)) {
			b.verbatim(strings.TrimSuffix(l, "\n"))
		}
		return b.lines
	}
	b.blocks(chatParser.Parse(text.NewReader(b.source)))
	return b.lines
}

// clean makes every line end a \n, and replaces invalid UTF-8 and control characters.
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

// arithmetic leaves operators as they are, before emphasis is looked for: a single star between
// letters or digits, as in 2*3*4 or a*b, any number of them between digits, as in 2**3, and a single
// tilde after a letter or digit and before one, as in 10~20.
type arithmetic struct{}

func (arithmetic) Trigger() []byte { return []byte{'*', '~'} }

func (arithmetic) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, _ := block.PeekLine()
	n, after := run(line)
	if n == 1 && line[0] == '~' && isWordRune(before) && isWordRune(after) {
		return literal(block, n)
	}
	if isWord(before) && isWord(after) && (n == 1 || isDigit(before) && isDigit(after)) {
		return literal(block, n)
	}
	return nil
}

// flanking lets marks begin and end between punctuation and letters where words have no spaces between them, as after
// the colon of **注意：**请. CommonMark takes them for literal stars there.
type flanking struct{ parser.InlineParser }

func (f flanking) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, _ := block.PeekLine()
	n, after := run(line)
	node := f.InlineParser.Parse(parent, block, pc)
	d, ok := node.(*parser.Delimiter)
	if !ok || d.Char == '_' || !isUnspaced(before) && !isUnspaced(after) {
		return node
	}
	// In src/**, *.go and *.* the stars are globs.
	opens := after > unicode.MaxASCII || n == 1 && strings.ContainsRune("([{<\"'`$#", after) || n > 1 && after != '/'
	closes := before != '/' && (n > 1 || before != '.')
	d.CanOpen = d.CanOpen || opens && !unicode.IsSpace(after)
	d.CanClose = d.CanClose || closes && !unicode.IsSpace(before)
	return node
}

// isUnspaced reports whether r is of a script whose words may stand beside others or punctuation without a space:
// those of Asia from Hebrew on, with their punctuation.
func isUnspaced(r rune) bool {
	return r >= 0x590 && r < 0x1e00 || r >= 0x2e80 && r != utf8.RuneError && !unicode.IsSymbol(r)
}

// tasks leaves links such as [X](https://x.com) to the parser of links: a space follows the box of a task.
type tasks struct{ parser.InlineParser }

func (t tasks) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if line, _ := block.PeekLine(); len(line) > 3 && !util.IsSpace(line[3]) {
		return nil
	}
	return t.InlineParser.Parse(parent, block, pc)
}

// webLinks leaves the brackets around anything but the address of a web page or of mail, such as vector<std::string>.
type webLinks struct{ parser.InlineParser }

func (l webLinks) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	node := l.InlineParser.Parse(parent, block, pc)
	auto, ok := node.(*ast.AutoLink)
	if ok && auto.AutoLinkType == ast.AutoLinkURL && !webLink(string(auto.URL(block.Source()))) {
		return nil
	}
	return node
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

// run counts how often the first byte of a line is repeated, and returns the rest.
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

// isWord reports whether r is an ASCII letter or digit.
func isWord(r rune) bool {
	return isDigit(r) || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }
