package render

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Limits of one message, from the documentation of each platform: Telegram's in UTF-16 units, the
// others in characters.
const (
	LimitTelegram = 4096
	LimitDiscord  = 2000
	LimitSlack    = 4000
)

// maxLong is how many blocks of a text are made files.
const maxLong = 10

// A Long is a table or code block of a text that does not fit into one message.
type Long struct {
	Name string // of a file: table.csv, code.go, with a number from the second of an ending on
	Text string // the code, or the cells as CSV

	note       string // the line in its place
	start, end int    // in the cleaned text, whole lines

	marker string // the start of the first line of a list item, if the block is first in it
	within string // the start of the lines of the lists and quotes around the block
}

// FindLong returns the first ten tables and code blocks of a text that do not fit into one message of a
// platform, also those in lists and quotes; none for a platform without a limit that is known.
func FindLong(platform, markdown string) (all []Long) {
	one := onePart(platform)
	if one == nil || len(markdown) < minLimit || chatLimits.exceeded(clean(markdown)) {
		return nil
	}
	f := longFinder{builder: builder{source: []byte(clean(markdown)), keep: noLink}, fits: one, count: map[string]int{}}
	f.find(chatParser.Parse(text.NewReader(f.source)), nil)
	return f.all
}

// longFinder finds the long blocks of a text.
type longFinder struct {
	builder
	fits  func(markdown string) bool // into one message
	count map[string]int             // by ending
	all   []Long
}

// find adds the long blocks below a node, which is in some lists and quotes.
func (f *longFinder) find(parent ast.Node, in []container) {
	for n := parent.FirstChild(); n != nil && len(f.all) < maxLong; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.List:
			f.find(n, in)
		case *ast.ListItem:
			f.find(n, append(in[:len(in):len(in)], container{item: n.Offset}))
		case *ast.Blockquote:
			f.find(n, append(in[:len(in):len(in)], container{}))
		default:
			f.add(n, in)
		}
	}
}

// add adds a block if it is a long one.
func (f *longFinder) add(n ast.Node, in []container) {
	l, ending := f.long(n, in)
	if ending == "" || f.fits(string(f.source[l.start:l.end])) {
		return
	}
	name := "code"
	if ending == "csv" {
		name = "table"
	}
	if f.count[ending]++; f.count[ending] > 1 {
		name = fmt.Sprintf("%s-%d", name, f.count[ending])
	}
	l.Name = name + "." + ending
	l.note = fmt.Sprintf("[%s: %s]", l.Name, l.note)
	for _, c := range in {
		l.within += c.prefix()
	}
	f.all = append(f.all, l)
}

// container is an item of a list, whose content begins so many columns after its parent's, or a quote: 0.
type container struct{ item int }

// prefix is the start of a line in it.
func (c container) prefix() string {
	if c.item > 0 {
		return strings.Repeat(" ", c.item)
	}
	return "> "
}

// cutContainers removes the marks that begin a line in lists and quotes, and reports whether the line is in them.
func cutContainers(line string, in []container) (rest string, ok bool) {
	for _, c := range in {
		if c.item > 0 {
			if line, ok = strings.CutPrefix(line, c.prefix()); !ok {
				return "", false
			}
			continue
		}
		if line, ok = strings.CutPrefix(strings.TrimLeft(line, " "), ">"); !ok {
			return "", false
		}
		line = strings.TrimPrefix(line, " ")
	}
	return line, true
}

// blank reports whether a line has no text, but perhaps the signs of quotes.
func blank(line string) bool { return strings.Trim(line, "> \t\n") == "" }

// ReplaceLong puts a paragraph in the place of each of some blocks that FindLong has found in a text, in their order.
func ReplaceLong(markdown string, blocks []Long) string {
	source := clean(markdown)
	var b strings.Builder
	done := 0
	for _, l := range blocks {
		b.WriteString(source[done:l.start])
		text := b.String()
		empty := strings.TrimRight(l.within, " ") + "\n"
		if l.marker == "" && text != "" && !blank(lastLine(text)) {
			b.WriteString(empty) // it would go on with the block before
		}
		b.WriteString(cmp.Or(l.marker, l.within) + l.note + "\n")
		if done = l.end; done < len(source) && !blank(firstLine(source[done:])) {
			b.WriteString(empty) // the next block would go on with the line
		}
	}
	b.WriteString(source[done:])
	return strings.TrimRight(b.String(), "\n")
}

// firstLine is the first line of a text, lastLine the last one that is ended.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// onePart reports whether a text fits into one message of a platform; it is nil where no limit is known.
func onePart(platform string) func(markdown string) bool {
	switch platform {
	case "telegram":
		return func(s string) bool { return len(Telegram(s, LimitTelegram)) <= 1 }
	case "discord":
		return func(s string) bool { return len(Discord(s, LimitDiscord)) <= 1 }
	case "slack":
		return func(s string) bool { return len(Slack(s, LimitSlack)) <= 1 }
	}
	return nil
}

// long reads a block that may be made a file, in some lists and quotes. The ending is that of the file, "" for other
// blocks.
func (b *builder) long(n ast.Node, in []container) (l Long, ending string) {
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		l, ending = b.longCode(n), endingOf(string(n.Language(b.source)))
		if l.end > l.start {
			b.addFences(&l, in)
		}
	case *ast.CodeBlock:
		l, ending = b.longCode(n), "txt"
		if l.end > l.start {
			l.marker = markerOf(string(b.source[l.start:n.Lines().At(0).Start]))
		}
	case *east.Table:
		l, ending = b.longTable(n), "csv"
		if l.start == b.lineStart(n.Pos()) && l.end > l.start {
			l.marker = markerOf(string(b.source[l.start:n.Pos()]))
		}
	}
	if l.end <= l.start {
		return Long{}, ""
	}
	return l, ending
}

// addFences adds the lines with the fences to a block that has the lines between them.
func (b *builder) addFences(l *Long, in []container) {
	l.start = b.lineStart(l.start - 1)
	opening := string(b.source[l.start:b.lineEnd(l.start)])
	at := max(strings.IndexAny(opening, "`~"), 0)
	l.marker = markerOf(opening[:at])
	next := b.lineEnd(l.end)
	if line, inside := cutContainers(string(b.source[l.end:next]), in); inside && isFence(line, opening[at:]) {
		l.end = next
	}
}

// markerOf returns the text before the first block of a list item, "" if nothing but space and the signs of
// quotes does.
func markerOf(before string) string {
	if blank(before) {
		return ""
	}
	return strings.TrimRight(before, " \t") + " "
}

func (b *builder) longCode(n ast.Node) (l Long) {
	count := n.Lines().Len()
	if count == 0 {
		return l
	}
	lines := b.rawLines(n)
	l.start, l.end = b.lineStart(n.Lines().At(0).Start), n.Lines().At(count-1).Stop
	l.Text, l.note = strings.Join(lines, "\n")+"\n", fmt.Sprintf("%d lines", count)
	return l
}

func (b *builder) longTable(t *east.Table) (l Long) {
	var out strings.Builder
	w := csv.NewWriter(&out)
	rows := 0
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil && len(cells) < len(t.Alignments); cell = cell.NextSibling() {
			cells = append(cells, harmless(b.plainText(cell, nil)))
		}
		_ = w.Write(cells) // into memory
		rows++
	}
	w.Flush()
	l.start, l.end = b.tableLines(t.Pos(), rows)
	l.Text, l.note = out.String(), fmt.Sprintf("%d rows", rows-1)
	return l
}

// tableLines returns where a table with so many rows begins and ends. Its paragraph, at pos, may
// begin with other lines; the second line of the table has nothing but bars, dashes and colons.
func (b *builder) tableLines(pos, rows int) (start, end int) {
	if pos < 0 {
		return 0, 0
	}
	start = b.lineStart(pos)
	for next := b.lineEnd(start); next < len(b.source); start, next = next, b.lineEnd(next) {
		under := strings.Trim(string(b.source[next:b.lineEnd(next)]), "-:|> \t\n")
		if under != "" {
			continue
		}
		end = start
		for range rows + 1 {
			end = b.lineEnd(end)
		}
		return start, end
	}
	return 0, 0
}

// lineStart returns where the line of a position begins, lineEnd where the next one does.
func (b *builder) lineStart(at int) int {
	return strings.LastIndexByte(string(b.source[:max(at, 0)]), '\n') + 1
}

func (b *builder) lineEnd(at int) int {
	if n := strings.IndexByte(string(b.source[at:]), '\n'); n >= 0 {
		return at + n + 1
	}
	return len(b.source)
}

// isFence reports whether a line closes the code block that begins with opening.
func isFence(line, opening string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= 3 && strings.Trim(line, opening[:1]) == "" && strings.ContainsAny(opening[:1], "`~")
}

// harmless keeps spreadsheets from taking a cell for a formula: agents repeat strangers' texts.
func harmless(cell string) string {
	first, _ := utf8.DecodeRuneInString(cell)
	switch {
	case strings.ContainsRune("=@", first), strings.ContainsRune("+-", first) &&
		strings.Trim(cell[1:], "0123456789.,%") != "":
		return "'" + cell
	}
	return cell
}

// endingOf is the ending of a file with code in a language. Of a language that is not known it is that
// of text, so that no file is one that a click runs.
func endingOf(language string) string {
	language = strings.ToLower(language)
	if slices.Contains(endings, language) {
		return language
	}
	return cmp.Or(languageEndings[language], "txt")
}

var endings = []string{
	"go", "py", "js", "ts", "jsx", "tsx", "json", "yaml", "yml", "toml", "ini", "xml", "html", "css", "sql", "sh", "rb",
	"rs", "java", "kt", "c", "h", "cpp", "cs", "php", "swift", "lua", "diff", "md", "csv", "tex", "proto", "tf",
}

// languageEndings are the endings of languages whose name is none.
var languageEndings = map[string]string{
	"golang": "go", "python": "py", "python3": "py", "javascript": "js", "typescript": "ts", "bash": "sh",
	"shell": "sh", "zsh": "sh", "ruby": "rb", "rust": "rs", "kotlin": "kt", "c++": "cpp", "csharp": "cs", "c#": "cs",
	"markdown": "md", "patch": "diff",
}
