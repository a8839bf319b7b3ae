package render

import (
	"html"
	"net/url"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// keepLink decides whether a link to an address stays a link. Others become text, followed by
// the address.
type keepLink func(address, label string) bool

// maxAddress is the longest address that chats link to and that is spelled out, in bytes: a picture may come as an
// address that holds all of it. Of longer ones maxBeginning characters are shown.
const (
	maxAddress   = 2048
	maxBeginning = 80
)

// inlines adds a node's content to the last line, and begins another one at each line break.
func (b *builder) inlines(parent ast.Node, marks []mark) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.text(decode(string(n.Segment.Value(b.source))), marks)
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.add()
			}
		case *ast.String:
			b.text(string(n.Value), marks)
		case *ast.CodeSpan:
			b.text(b.codeText(n), with(marks, mark{kind: code}))
		case *ast.Emphasis:
			b.inlines(n, with(marks, mark{kind: [...]kind{italic, bold}[n.Level-1]}))
		case *east.Strikethrough:
			b.inlines(n, with(marks, mark{kind: strike}))
		case *spoilerNode:
			b.inlines(n, with(marks, mark{kind: spoiler}))
		case *ast.Link:
			b.link(n, n.Destination, marks)
		case *ast.Image:
			b.link(n, n.Destination, marks)
		case *ast.AutoLink:
			b.autoLink(n, marks)
		case *east.TaskCheckBox:
			b.task(n.IsChecked)
		default:
			b.inlines(n, marks)
		}
	}
}

// with puts a mark inside of others, unless they have it already. A heading is bold.
func with(marks []mark, m mark) []mark {
	if has(marks, m.kind) || m.kind == bold && has(marks, heading) {
		return marks
	}
	return append(marks[:len(marks):len(marks)], m)
}

// text adds text to the last line. Character references can make line breaks too.
func (b *builder) text(s string, marks []mark) {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return printable(r)
	}, s)
	if !equal(b.marks, marks) {
		b.endSpan()
	}
	if len(b.pending) == 0 && len(b.lines[len(b.lines)-1].spans) == 0 && !has(marks, code) {
		s = strings.TrimLeft(s, " \t")
	}
	b.pending, b.marks = append(b.pending, s...), marks
}

func (b *builder) codeText(n ast.Node) string {
	var s strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			s.Write(t.Segment.Value(b.source))
		}
	}
	return strings.ReplaceAll(s.String(), "\n", " ")
}

// task puts the state of a task in place of the item's bullet.
func (b *builder) task(done bool) {
	l := &b.lines[len(b.lines)-1]
	box := openTask
	if done {
		box = doneTask
	}
	bullet, found := strings.CutSuffix(l.bullet, "-")
	if !found {
		bullet += " "
	}
	l.bullet = bullet + box
}

// link shows a link or an image as a link, loading nothing. In the text of a link there is no
// other one.
func (b *builder) link(n ast.Node, destination []byte, marks []mark) {
	if has(marks, link) {
		b.inlines(n, marks)
		return
	}
	address := string(util.URLEscape(destination, true))
	shown := shownAddress(destination)
	label := b.label(n)
	if label == "" || label == shown {
		b.bare(address, shown, marks)
		return
	}
	if len(address) <= maxAddress && b.keep(address, label) {
		b.inlines(n, with(marks, mark{kind: link, url: address}))
		return
	}
	b.inlines(n, marks)
	if shown != "" {
		b.text(" (", marks)
		b.bare(address, shown, marks)
		b.text(")", marks)
	}
}

// shownAddress is a link's address as it is spelled out.
func shownAddress(destination []byte) string {
	shown := strings.TrimPrefix(decode(string(destination)), mailto)
	if len(shown) > maxAddress {
		shown = firstRunes(shown, maxBeginning) + "…"
	}
	return shown
}

func (b *builder) autoLink(n *ast.AutoLink, marks []mark) {
	address := string(n.URL(b.source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(address, mailto) {
		address = mailto + address
	}
	b.bare(string(util.URLEscape([]byte(address), false)), string(n.Label(b.source)), marks)
}

// bare shows an address itself.
func (b *builder) bare(address, text string, marks []mark) {
	text = strings.TrimPrefix(text, mailto)
	if len(address) <= maxAddress && b.keep(address, address) {
		marks = with(marks, mark{kind: link, url: address, bare: true})
	}
	b.text(text, marks)
}

// label is the text of a link without its formatting.
func (b *builder) label(n ast.Node) string {
	return b.plainText(n, []mark{{kind: link}})
}

func (b *builder) plainText(n ast.Node, marks []mark) string {
	c := builder{source: b.source, keep: noLink}
	c.add()
	c.inlines(n, marks)
	c.endSpan()
	var s strings.Builder
	for i, l := range c.lines {
		if i > 0 {
			s.WriteByte(' ')
		}
		for _, sp := range l.spans {
			s.WriteString(sp.text)
		}
	}
	return strings.TrimSpace(s.String())
}

const mailto = "mailto:"

func noLink(string, string) bool { return false }

// webLink reports whether an address is one of a web page, or of mail. All others, known to be
// dangerous or not, are no links; an address that browsers would first trim or decode does not begin with one
// of these schemes.
func webLink(address string) bool { return pageLink(address) || mailLink(address) }

// pageLink reports whether an address is one of a web page.
func pageLink(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// mailLink reports whether an address is one of mail.
func mailLink(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "mailto" && u.Opaque != ""
}

var reference = regexp.MustCompile(`^&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});`)

// decode resolves backslash escapes and character references.
func decode(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
		case s[i] == '&':
			if r := resolve(s[i:min(len(s), i+40)]); r != "" {
				out.WriteString(html.UnescapeString(r))
				i += len(r) - 1
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// resolve returns the character reference that s begins with, "" if there is none.
func resolve(s string) string {
	r := reference.FindString(s)
	if r == "" || r[1] == '#' {
		return r
	}
	if _, ok := util.LookUpHTML5EntityByName(r[1 : len(r)-1]); !ok {
		return ""
	}
	return r
}
