// Package markdown turns what agents write into HTML that is safe to show. Agents repeat what
// strangers told them, so their text is hostile: the output has a few elements and attributes
// only, loads nothing from elsewhere, and links to nothing but web pages and mail addresses.
// What is not shown as markup is shown as the text it is, not left out.
package markdown

import (
	"bytes"
	"html"
	"html/template"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	goldhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"arizuko/pkg/mdbounds"
)

// converter is never changed and safe for concurrent use.
var converter = newConverter()

// newConverter knows CommonMark with the tables, strikethrough, task lists and bare links of
// GitHub, and keeps every line break, as chats do. Raw HTML and link reference definitions are
// not among its parsers: they make text disappear.
func newConverter() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(without(parser.NewHTMLBlockParser(), parser.DefaultBlockParsers())...),
			parser.WithInlineParsers(without(parser.NewRawHTMLParser(), parser.DefaultInlineParsers())...),
			parser.WithParagraphTransformers(util.Prioritized(mdbounds.WholeTables{ParagraphTransformer: extension.NewTableParagraphTransformer()}, 200)),
			parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
		)),
		goldmark.WithExtensions(extension.Strikethrough, extension.TaskList, extension.Linkify),
		goldmark.WithRendererOptions(
			// XHTML is HTML that an XML parser can check.
			goldhtml.WithHardWraps(), goldhtml.WithXHTML(),
			renderer.WithNodeRenderers(
				// By attribute: the page's policy forbids styles in the markup.
				util.Prioritized(extension.NewTableHTMLRenderer(
					extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), 500),
				util.Prioritized(nodes{}, 100),
			),
		),
	)
}

func without(parser any, all []util.PrioritizedValue) []util.PrioritizedValue {
	var kept []util.PrioritizedValue
	for _, v := range all {
		if v.Value != parser {
			kept = append(kept, v)
		}
	}
	return kept
}

// Render renders a text. One that would take long, by its length or by how it is nested, comes
// as it was written, in one <pre>.
func Render(source string) template.HTML {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	if out, ok := convert(source); ok {
		return shown(out)
	}
	return shown("<pre>" + html.EscapeString(source) + "</pre>\n")
}

func convert(source string) (string, bool) {
	if takesLong(source) {
		return "", false
	}
	raw := []byte(source)
	tree := converter.Parser().Parse(text.NewReader(raw))
	if tooDeep(tree) {
		return "", false
	}
	var out bytes.Buffer
	if err := converter.Renderer().Render(&out, raw, tree); err != nil {
		return "", false
	}
	return out.String(), true
}

// shown replaces what has no place in a document: control characters, which character
// references make too, and bytes that are no UTF-8.
func shown(markup string) template.HTML {
	return template.HTML(strings.Map(func(c rune) rune {
		switch {
		case c == '\n', c == '\t':
			return c
		case c < ' ', c >= 0x7f && c < 0xa0, c == 0xfffe, c == 0xffff:
			return utf8.RuneError
		}
		return c
	}, markup))
}
