package render

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// A line is the text between two line breaks, with the blocks that it is in.
type line struct {
	starts bool   // a block begins here
	quote  int    // which quote the line is in, 0 for none
	fence  *fence // which code block the line is in; it has no indent and no bullet
	indent int    // columns
	bullet string // "-", a number or a task's box, with those of outer items before it
	spans  []span
}

// A fence is a code block, or a table.
type fence struct{ language string }

// A span is text without line breaks that is formatted in one way.
type span struct {
	text  string
	marks []mark // the outermost first, each kind once, code last
}

type mark struct {
	kind  kind
	level int    // of a heading
	url   string // of a link
	bare  bool   // of a link: its text is its address
}

type kind int

const (
	bold kind = iota
	italic
	strike
	spoiler
	link
	heading
	code
)

const (
	ruleText  = "———"
	openTask  = "☐"
	doneTask  = "☑"
	maxIndent = 20 // columns; deeper nesting is shown as this deep
)

// languageName matches the names that may follow a fence: other text would break out of it, and in
// HTML could be a class of the page's own.
var languageName = regexp.MustCompile(`^[0-9A-Za-z_+#.-]{1,32}$`)

// A builder reads a syntax tree into lines.
type builder struct {
	source []byte
	keep   keepLink
	lines  []line
	at     line // the next line, still empty
	quotes int  // how many quotes have begun
	// pending is text for the end of the last line; all of it has these marks.
	pending []byte
	marks   []mark
}

// add begins a line. Only the first line of a list item has its bullet, the others are indented by
// its width.
func (b *builder) add() *line {
	b.endSpan()
	b.lines = append(b.lines, b.at)
	b.at.starts = false
	b.at.indent, b.at.bullet = b.at.after(), ""
	return &b.lines[len(b.lines)-1]
}

// blocks adds the blocks in a node. The block after a heading does not start one for split: they
// stay together.
func (b *builder) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil && b.blankBefore(n) {
			b.empty()
		}
		b.at.starts = n.PreviousSibling() == nil || n.PreviousSibling().Kind() != ast.KindHeading
		b.block(n)
	}
}

// empty adds an empty line, unless there is one.
func (b *builder) empty() {
	if n := len(b.lines); n > 0 && (b.lines[n-1].fence != nil || b.lines[n-1].visible()) {
		b.lines = append(b.lines, line{quote: b.at.quote})
	}
}

// blankBefore reports whether a block follows an empty line. The parser's own mark
// is also set on every block after a fence. A table begins where the paragraph did that it is made
// of.
func (b *builder) blankBefore(n ast.Node) bool {
	if n.Pos() < 0 || n.Pos() == n.PreviousSibling().Pos() {
		return false
	}
	begin := bytes.LastIndexByte(b.source[:n.Pos()], '\n')
	if begin < 0 {
		return false
	}
	before := b.source[bytes.LastIndexByte(b.source[:begin], '\n')+1 : begin]
	return len(bytes.Trim(before, " \t>")) == 0
}

func (b *builder) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		if n.HasChildren() {
			b.add()
			b.inlines(n, []mark{{kind: heading, level: n.Level}})
			b.endSpan()
		}
	case *ast.Paragraph, *ast.TextBlock:
		b.add()
		b.inlines(n, nil)
		b.endSpan()
	case *verbatimNode:
		for _, l := range b.rawLines(n) {
			b.verbatim(l)
		}
	case *ast.FencedCodeBlock:
		name := string(n.Language(b.source))
		if !languageName.MatchString(name) {
			name = ""
		}
		b.fenced(name, b.rawLines(n))
	case *ast.CodeBlock:
		b.fenced("", b.rawLines(n))
	case *ast.ThematicBreak:
		b.verbatim(ruleText)
	case *east.Table:
		b.fenced("", b.table(n))
	case *ast.Blockquote:
		b.quoted(n)
	case *ast.List:
		b.list(n)
	default:
		b.blocks(n)
	}
}

func (b *builder) rawLines(n ast.Node) []string {
	var out []string
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		out = append(out, strings.TrimSuffix(string(segment.Value(b.source)), "\n"))
	}
	return out
}

// endSpan makes a span of the pending text.
func (b *builder) endSpan() {
	if len(b.pending) > 0 {
		l := &b.lines[len(b.lines)-1]
		l.spans = appendSpan(l.spans, string(b.pending), b.marks)
		b.pending = b.pending[:0]
	}
}

func (b *builder) verbatim(text string) {
	l := b.add()
	l.spans = appendSpan(l.spans, text, nil)
}

func (b *builder) fenced(language string, texts []string) {
	if b.at.bullet != "" {
		b.add()
	}
	f := &fence{language}
	for i, text := range texts {
		l := line{starts: i == 0 && b.at.starts, quote: b.at.quote, fence: f}
		l.spans = appendSpan(l.spans, text, nil)
		b.lines = append(b.lines, l)
	}
}

// quoted shows a quote within a quote as one: no platform nests them.
func (b *builder) quoted(n ast.Node) {
	if b.at.quote != 0 {
		b.blocks(n)
		return
	}
	b.quotes++
	b.at.quote = b.quotes
	b.blocks(n)
	b.at.quote = 0
}

func (b *builder) list(n *ast.List) {
	outer, number := b.at, n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil && b.blankBefore(item) {
			b.empty()
		}
		b.at.indent, b.at.starts = outer.indent, true
		bullet := "-"
		if n.IsOrdered() {
			bullet = strconv.Itoa(number) + string(n.Marker)
			number++
		}
		// A list that begins an item of another one shares its first line.
		b.at.bullet = bullet
		if outer.bullet != "" && runeLen(outer.bullet) < maxIndent {
			b.at.bullet = outer.bullet + " " + bullet
		}
		b.blocks(item)
		if b.at.bullet != "" {
			b.add()
		}
		outer.indent, outer.bullet = outer.after(), ""
	}
	b.at.indent = outer.indent
}

// after returns the indent of the lines that follow a line in its block.
func (l line) after() int {
	if l.bullet == "" {
		return l.indent
	}
	return min(l.indent+runeLen(l.bullet)+1, maxIndent)
}

func appendSpan(spans []span, text string, marks []mark) []span {
	if text == "" {
		return spans
	}
	if n := len(spans); n > 0 && equal(spans[n-1].marks, marks) {
		spans[n-1].text += text
		return spans
	}
	return append(spans, span{text, marks})
}

func equal(a, b []mark) bool {
	return len(a) == len(b) && common(a, b) == len(a)
}

// common counts the marks that two spans share from the outside.
func common(a, b []mark) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func has(marks []mark, k kind) bool {
	for _, m := range marks {
		if m.kind == k {
			return true
		}
	}
	return false
}
