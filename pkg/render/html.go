package render

import (
	"bytes"
	"html"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	goldhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// HTML renders markup that is safe to insert into a page: it has a few elements and attributes
// only, loads nothing, and links only to web pages and mail addresses. A text that exceeds the
// limits, by its length or its nesting, is returned as it is, in one <pre>.
func HTML(markdown string) string {
	source := clean(markdown)
	out, ok := toHTML(source)
	if !ok {
		out = "<pre>" + html.EscapeString(source) + "</pre>\n"
	}
	// After rendering, because character references make control characters too.
	return strings.Map(printable, out)
}

func toHTML(source string) (string, bool) {
	if htmlLimits.exceeded(source) {
		return "", false
	}
	raw := []byte(source)
	tree := htmlParser.Parse(text.NewReader(raw))
	if depth(tree) > maxDepth {
		return "", false
	}
	var out bytes.Buffer
	if err := htmlRenderer.Render(&out, raw, tree); err != nil {
		return "", false
	}
	return out.String(), true
}

// depth counts the nodes above the deepest one, that included. It stops counting above maxDepth:
// browsers flatten trees deeper than 512 elements.
func depth(tree ast.Node) int {
	level, deepest := 0, 0
	// The walk fails only with this function's error.
	_ = ast.Walk(tree, func(_ ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			level--
			return ast.WalkContinue, nil
		}
		level++
		if deepest = max(deepest, level); deepest > maxDepth {
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return deepest
}

// htmlRenderer is never changed and safe for concurrent use.
var htmlRenderer = newHTMLRenderer()

// newHTMLRenderer keeps every line break, as chats do. It writes XHTML, which is HTML that the
// tests can check with an XML parser.
func newHTMLRenderer() renderer.Renderer {
	tables := extension.NewTableHTMLRenderer(
		// By attribute: the page's policy forbids styles in the markup.
		extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	return renderer.NewRenderer(
		renderer.WithNodeRenderers(
			util.Prioritized(htmlNodes{}, 100),
			util.Prioritized(tables, 500),
			util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
			util.Prioritized(goldhtml.NewRenderer(), 1000),
		),
		goldhtml.WithHardWraps(), goldhtml.WithXHTML(),
	)
}

// htmlNodes renders the nodes whose content goes into attributes: links and the language of code.
type htmlNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (htmlNodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindLink, htmlLink)
	reg.Register(ast.KindImage, htmlImage)
	reg.Register(ast.KindAutoLink, htmlAutoLink)
	reg.Register(ast.KindFencedCodeBlock, htmlFencedCode)
	reg.Register(east.KindTaskCheckBox, htmlTask)
}

// htmlTask names the box of a task: a screen reader reads no text that stands beside it.
func htmlTask(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	box := `<input disabled="" type="checkbox" aria-label="to do" /> `
	if n.(*east.TaskCheckBox).IsChecked {
		box = `<input checked="" disabled="" type="checkbox" aria-label="done" /> `
	}
	if entering {
		_, _ = w.WriteString(box)
	}
	return ast.WalkContinue, nil
}

func htmlLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	l := n.(*ast.Link)
	return htmlAnchor(w, source, n, l.Destination, l.Title, entering)
}

// htmlImage shows a link with the alternative text: a page that shows a message loads nothing.
func htmlImage(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	i := n.(*ast.Image)
	return htmlAnchor(w, source, n, i.Destination, i.Title, entering)
}

// htmlAnchor shows the same words as builder.link.
func htmlAnchor(w util.BufWriter, source []byte, n ast.Node, destination, title []byte, entering bool) (ast.WalkStatus,
	error) {
	if insideLink(n) {
		return ast.WalkContinue, nil
	}
	address := util.URLEscape(destination, true)
	linked := webLink(string(address))
	if entering {
		if linked {
			openAnchor(w, address, title)
		}
		return ast.WalkContinue, nil
	}
	shown, label := shownAddress(destination), (&builder{source: source}).label(n)
	switch {
	case label == "": // else nothing of it would be visible
		_, _ = w.Write(util.EscapeHTML([]byte(shown)))
	case !linked && shown != "" && shown != label:
		_, _ = w.Write(util.EscapeHTML([]byte(" (" + shown + ")")))
	}
	if linked {
		_, _ = w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

func htmlAutoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	l := n.(*ast.AutoLink)
	label, address := util.EscapeHTML(l.Label(source)), util.URLEscape(l.URL(source), false)
	if l.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(address), []byte(mailto)) {
		address = append([]byte(mailto), address...)
	}
	if !webLink(string(address)) || insideLink(n) {
		_, _ = w.Write(label)
		return ast.WalkContinue, nil
	}
	openAnchor(w, address, nil)
	_, _ = w.Write(label)
	_, _ = w.WriteString("</a>")
	return ast.WalkContinue, nil
}

// openAnchor begins a link that opens a new page, which learns nothing of this one.
func openAnchor(w util.BufWriter, address, title []byte) {
	_, _ = w.WriteString(`<a href="`)
	_, _ = w.Write(util.EscapeHTML(address))
	if len(title) > 0 {
		_, _ = w.WriteString(`" title="`)
		goldhtml.DefaultWriter.Write(w, title)
	}
	_, _ = w.WriteString(`" rel="noopener noreferrer nofollow" target="_blank">`)
}

// insideLink reports whether a node is in the text of a link, where HTML allows no second one.
func insideLink(n ast.Node) bool {
	for p := n.Parent(); p != nil && p.Type() == ast.TypeInline; p = p.Parent() {
		if p.Kind() == ast.KindLink || p.Kind() == ast.KindImage {
			return true
		}
	}
	return false
}

// htmlFencedCode writes the language as a class, unless it could be one of the page's own.
func htmlFencedCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</code></pre>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<pre><code")
	if name := n.(*ast.FencedCodeBlock).Language(source); languageName.Match(name) {
		_, _ = w.WriteString(` class="language-` + string(name) + `"`)
	}
	_ = w.WriteByte('>')
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		goldhtml.DefaultWriter.RawWrite(w, line.Value(source))
	}
	return ast.WalkContinue, nil
}
