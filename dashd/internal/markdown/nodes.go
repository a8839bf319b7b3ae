package markdown

import (
	"bytes"
	"net/url"
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	goldhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// language is a name that may stand in a class. Others could make classes of the page's own.
var language = regexp.MustCompile(`^[0-9A-Za-z_+#.-]{1,32}$`)

// nodes renders the nodes that carry something into attributes: links and the language of code.
type nodes struct{}

func (nodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindLink, link)
	reg.Register(ast.KindImage, image)
	reg.Register(ast.KindAutoLink, autoLink)
	reg.Register(ast.KindFencedCodeBlock, fencedCode)
}

func link(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	l := n.(*ast.Link)
	return anchor(w, n, l.Destination, l.Title, entering)
}

// image shows a link with the alternative text: looking at a message loads nothing.
func image(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	i := n.(*ast.Image)
	return anchor(w, n, i.Destination, i.Title, entering)
}

func anchor(w util.BufWriter, n ast.Node, destination, title []byte, entering bool) (ast.WalkStatus, error) {
	address := util.URLEscape(destination, true)
	linked := linkable(address) && !insideLink(n)
	switch {
	case linked && entering:
		openLink(w, address, title)
	case linked:
		_, _ = w.WriteString("</a>")
	}
	if entering && !n.HasChildren() {
		_, _ = w.Write(util.EscapeHTML(address)) // else nothing would be seen of it
	}
	return ast.WalkContinue, nil
}

func autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	l := n.(*ast.AutoLink)
	label, address := util.EscapeHTML(l.Label(source)), util.URLEscape(l.URL(source), false)
	if l.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(address), []byte("mailto:")) {
		address = append([]byte("mailto:"), address...)
	}
	if !linkable(address) || insideLink(n) {
		_, _ = w.Write(label)
		return ast.WalkContinue, nil
	}
	openLink(w, address, nil)
	_, _ = w.Write(label)
	_, _ = w.WriteString("</a>")
	return ast.WalkContinue, nil
}

// openLink begins a link that opens a page of its own, which learns nothing of this one.
func openLink(w util.BufWriter, address, title []byte) {
	_, _ = w.WriteString(`<a href="`)
	_, _ = w.Write(util.EscapeHTML(address))
	if len(title) > 0 {
		_, _ = w.WriteString(`" title="`)
		goldhtml.DefaultWriter.Write(w, title)
	}
	_, _ = w.WriteString(`" rel="noopener noreferrer nofollow" target="_blank">`)
}

// linkable tells the addresses that may be followed. All others, known to be dangerous or not,
// may not; what browsers would drop or decode first does not begin with one of these schemes.
func linkable(address []byte) bool {
	parsed, err := url.Parse(string(address))
	if err != nil {
		return false
	}
	switch parsed.Scheme {
	case "http", "https":
		return parsed.Host != ""
	case "mailto":
		return parsed.Opaque != ""
	}
	return false
}

// insideLink tells nodes in the text of a link, where HTML has no second one.
func insideLink(n ast.Node) bool {
	for p := n.Parent(); p != nil && p.Type() == ast.TypeInline; p = p.Parent() {
		if p.Kind() == ast.KindLink || p.Kind() == ast.KindImage {
			return true
		}
	}
	return false
}

func fencedCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</code></pre>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<pre><code")
	if name := n.(*ast.FencedCodeBlock).Language(source); language.Match(name) {
		_, _ = w.WriteString(` class="language-` + string(name) + `"`)
	}
	_ = w.WriteByte('>')
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		goldhtml.DefaultWriter.RawWrite(w, line.Value(source))
	}
	return ast.WalkContinue, nil
}
