package render_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/render"
)

// linkAttributes are the attributes of every link beside its href.
const linkAttributes = ` rel="noopener noreferrer nofollow" target="_blank"`

func TestHTML(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"chat line breaks", "one\ntwo\r\nthree\rfour\n\nfive", "<p>one<br />\ntwo<br />\nthree<br />\nfour</p>\n<p>five</p>\n"},
		{"emphasis", "*a* **b** ~~c~~ `d*`", "<p><em>a</em> <strong>b</strong> <del>c</del> <code>d*</code></p>\n"},
		{"heading without id", "# Location\n\nx\n===", "<h1>Location</h1>\n<h1>x</h1>\n"},
		{"heading attributes", "# a {#location}", "<h1>a {#location}</h1>\n"},
		{"list", "3. a\n4. b", "<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>\n"},
		{"tasks", "- [ ] a\n- [x] b", "<ul>\n<li><input disabled=\"\" type=\"checkbox\" aria-label=\"to do\" /> a</li>\n" +
			"<li><input checked=\"\" disabled=\"\" type=\"checkbox\" aria-label=\"done\" /> b</li>\n</ul>\n"},
		{"quote", "> a\n\n---", "<blockquote>\n<p>a</p>\n</blockquote>\n<hr />\n"},
		{"table", "a|b\n:-|-:\n*1*|`<`", "<table>\n<thead>\n<tr>\n<th align=\"left\">a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n" +
			"<tbody>\n<tr>\n<td align=\"left\"><em>1</em></td>\n<td align=\"right\"><code>&lt;</code></td>\n</tr>\n</tbody>\n</table>\n"},
		{"table with a pipe in a cell", "a|b\n-|-\n`x\\|y`|c", "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n" +
			"<tbody>\n<tr>\n<td><code>x|y</code></td>\n<td>c</td>\n</tr>\n</tbody>\n</table>\n"},
		{"table that would lose a cell", "a|b\n-|-\n1|2|3", "<p>a|b<br />\n-|-<br />\n1|2|3</p>\n"},
		{"code", "```go\nif a < b && \"c\" {\n```", "<pre><code class=\"language-go\">if a &lt; b &amp;&amp; &quot;c&quot; {\n</code></pre>\n"},
		{"code never closed", "```\na", "<pre><code>a\n</code></pre>\n"},
		{"indented code", "    <b>", "<pre><code>&lt;b&gt;\n</code></pre>\n"},
		{"language of several classes", "```a&#32;message\nb\n```", "<pre><code>b\n</code></pre>\n"},
		{"language that ends the attribute", "```\"><script>\nb\n```", "<pre><code>b\n</code></pre>\n"},
		{"definition", "[a]: http://b.c\n[a]", "<p>[a]: <a href=\"http://b.c\"" + linkAttributes + ">http://b.c</a><br />\n[a]</p>\n"},

		{"raw HTML", "<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"},
		{"raw HTML inline", "a <b onclick=x>b</b> <!-- c -->", "<p>a &lt;b onclick=x&gt;b&lt;/b&gt; &lt;!-- c --&gt;</p>\n"},
		{"entities", "&lt;b&gt; &#60;b> &amp;lt; &quot;", "<p>&lt;b&gt; &lt;b&gt; &amp;lt; &quot;</p>\n"},
		{"control characters", "a\x00b\x1bc&#1;d\xffe&#x80;", "<p>a\ufffdb\ufffdc\ufffdd\ufffde\ufffd</p>\n"},
		{"ends the code element", "`</code><img src=x>`", "<p><code>&lt;/code&gt;&lt;img src=x&gt;</code></p>\n"},

		{"link", "[a *b*](https://c.d/e?f=1&g=\"2\" 'ti\"tle')",
			"<p><a href=\"https://c.d/e?f=1&amp;g=%222%22\" title=\"ti&quot;tle\"" + linkAttributes + ">a <em>b</em></a></p>\n"},
		{"mail", "<a@b.c> [x](mailto:a@b.c)", "<p><a href=\"mailto:a@b.c\"" + linkAttributes + ">a@b.c</a> <a href=\"mailto:a@b.c\"" + linkAttributes + ">x</a></p>\n"},
		{"bare", "see https://a.b/c, www.d.e.", "<p>see <a href=\"https://a.b/c\"" + linkAttributes + ">https://a.b/c</a>, <a href=\"http://www.d.e\"" + linkAttributes + ">www.d.e</a>.</p>\n"},
		{"no task", "- [X](http://x.com)", "<ul>\n<li><a href=\"http://x.com\"" + linkAttributes + ">X</a></li>\n</ul>\n"},
		{"no address", "vector<std::string>", "<p>vector&lt;std::string&gt;</p>\n"},
		{"no text", "[](https://a.b) ![](https://a.b/c)", "<p><a href=\"https://a.b\"" + linkAttributes + ">https://a.b</a> <a href=\"https://a.b/c\"" + linkAttributes + ">https://a.b/c</a></p>\n"},
		{"image", "![a *b*](http://c.d/e.png)", "<p><a href=\"http://c.d/e.png\"" + linkAttributes + ">a <em>b</em></a></p>\n"},
		{"image of data", "![a](data:image/svg+xml,<svg>)", "<p>a (data:image/svg+xml,&lt;svg&gt;)</p>\n"},
		{"link to a file", "[main.go](src/main.go) [a](a) [ ](<b c>)", "<p>main.go (src/main.go) a  b c</p>\n"},
		{"image in a link", "[![a](http://b.c/d.png)](http://e.f)", "<p><a href=\"http://e.f\"" + linkAttributes + ">a</a></p>\n"},
		{"link in an image", "![a [b](http://c.d)](http://e.f)", "<p><a href=\"http://e.f\"" + linkAttributes + ">a b</a></p>\n"},
		{"address in a link", "[a <http://b.c> *<d@e.f>*](http://g.h)", "<p><a href=\"http://g.h\"" + linkAttributes + ">a http://b.c <em>d@e.f</em></a></p>\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := render.HTML(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if err := checkHTML(got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHTML_OtherAddresses_NotLinked(t *testing.T) {
	for _, address := range []string{
		"javascript:alert(1)", "JavaScript:alert(1)", "javascript&colon;alert(1)", "&#106;avascript:alert(1)",
		"java\\script:alert(1)", "<java\tscript:alert(1)>", "< javascript:alert(1)>", "java&#10;script:alert(1)", "&#1;javascript:alert(1)",
		"&NewLine;javascript:alert(1)", "vbscript:a", "data:text/html,a", "DATA&#x3a;text/html;base64,YQ==", "blob:https://a.b/c",
		"file:///etc/passwd", "ftp://a.b", "tel:1", "view-source:https://a.b", "//a.b", "/\\a.b", "/logout", "report.pdf", "?a", "#a", "http:", "http:a.b", "https:///a.b",
		"<http://a b/c>", "mailto:", "https://[", "feed:javascript:alert(1)", "http&#0;s://a.b",
	} {
		for _, source := range []string{"[text](" + address + ")", "![text](" + address + ")"} {
			got := render.HTML(source)
			if strings.Contains(got, "<a") || !strings.Contains(got, "text") {
				t.Errorf("%q: %s", source, got)
			}
		}
	}
	for _, source := range []string{"<javascript:alert(1)>", "<ftp://a.b>", "ftp://a.b/c"} {
		got := render.HTML(source)
		if strings.Contains(got, "<a") || !strings.Contains(got, strings.Trim(source, "<>")) {
			t.Errorf("%q: %s", source, got)
		}
	}
}

func TestHTML_TooLongOrNested_Preformatted(t *testing.T) {
	for name, source := range map[string]string{
		"long":             strings.Repeat("a ", 33<<10),
		"very long":        strings.Repeat("[", 1<<20),
		"many stars":       strings.Repeat("*", 1<<20),
		"many quotes":      strings.Repeat("> ", 10_000) + "a",
		"quotes and lists": strings.Repeat(">- 1) ", 100) + "a",
		"deep emphasis":    strings.Repeat("*a **b ", 150) + strings.Repeat("c** d*", 150),
		"deep list":        nestedList(120),
	} {
		if got, want := render.HTML(source), "<pre>"; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.60q", name, got)
		}
	}
	if got := render.HTML(strings.Repeat("<&", 40_000)); got != "<pre>"+strings.Repeat("&lt;&amp;", 40_000)+"</pre>\n" {
		t.Errorf("%.60q", got)
	}
}

func TestHTML_LongAnswers_Rendered(t *testing.T) {
	for name, source := range map[string]string{
		"prose":  strings.Repeat("Some **bold** words, a [link](https://a.b) and `code`.\nAnd more of it.\n\n", 700),
		"table":  "a|b|c\n-|-|-\n" + strings.Repeat("1|**2**|3\n", 300),
		"code":   "```c\n" + strings.Repeat("for (i_1 = 0; a[i_1]; i_1++) { *p++ = a[i_1]; }\n\n", 1000) + "```\n",
		"rule":   strings.Repeat("-", 300) + "\n" + strings.Repeat("- ", 50),
		"nested": nestedList(20),
	} {
		if got := render.HTML(source); strings.HasPrefix(got, "<pre>") && !strings.HasPrefix(got, "<pre><code") {
			t.Errorf("%s: %.60q", name, got)
		}
	}
}

// The slowest texts within the limits: 100 ms each, and minutes without limits.
func TestHTML_HostileText_TakesLittleTime(t *testing.T) {
	const long = 60 << 10
	for _, piece := range []string{
		"[", "![", "[a](", "[a](b) ", "[]", "*a", "*a_ ", "**a ", "~a", "`a``b", "<a:", "<a@b", "(", "&#1", "_a", " a@b.c", "\\", "\t",
		"> ", ">a\n", ">a\n\n", "- ", "-\n", "1. ", "> - ", "- [ ] x\n", "# a\n", "```\n", "[x]: y\n", "|", "a|b\n-|-\n", "|a\n|-\n", "a\n",
	} {
		check := func(source string) {
			start := time.Now()
			got := render.HTML(source)
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("%.20q: %v", source, took)
			}
			if len(got) > 40*long {
				t.Errorf("%.20q: %d bytes", source, len(got))
			}
			if err := checkHTML(got); err != nil {
				t.Errorf("%.20q: %v", source, err)
			}
		}
		check(strings.Repeat(piece, long/len(piece)))
		paragraph := strings.Repeat(piece, 1900/len(piece)) + "\n\n"
		check(strings.Repeat(paragraph, long/len(paragraph)))
	}
	wide := strings.Repeat("|a", 8000) + "\n" + strings.Repeat("|-", 8000) + "\n" + strings.Repeat("a\n", 8000)
	if got := render.HTML(wide); len(got) > 40*long {
		t.Errorf("wide table: %d bytes", len(got))
	}
	lean := strings.Repeat("|a", 400) + "\n" + strings.Repeat("|-", 400) + "\n" + strings.Repeat("a\n", 8000)
	if got := render.HTML(lean); len(got) > 40*long {
		t.Errorf("lean table: %d bytes", len(got))
	}
}

func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		"# a\n\n> - 1. *b* **c** ~~d~~ `e`\n\n```go\nf\n```\n", "a|b\n-|:-:\n`\\|`|[x](y)", "[![a](b)](http://c 'd')<e@f.g>", "- [x] <http://a>\n\t\tb",
		"[a](javascript:b)![c](data:d)", "<script>&#0;\x00\xff</script>", "www.a.b/c(d) _https://e.f_", "\\\n&colon;&#58;&amp;", "[a]: b\n[a][]", "a\n:-:\nb\\|c|d",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if err := checkHTML(render.HTML(source)); err != nil {
			t.Errorf("%q: %v\n%s", source, err, render.HTML(source))
		}
	})
}

// allowedElements are the elements, and the attributes they may have.
var allowedElements = map[string][]string{
	"p": nil, "br": nil, "hr": nil, "pre": nil, "em": nil, "strong": nil, "del": nil, "blockquote": nil, "ul": nil, "li": nil,
	"h1": nil, "h2": nil, "h3": nil, "h4": nil, "h5": nil, "h6": nil, "ol": {"start"}, "code": {"class"},
	"table": nil, "thead": nil, "tbody": nil, "tr": nil, "th": {"align"}, "td": {"align"},
	"input": {"type", "checked", "disabled", "aria-label"}, "a": {"href", "title", "rel", "target"},
}

// checkHTML reads markup as strict XML: HTML parsers see the same elements and attributes in what is
// well-formed and has no element whose content HTML parses in its own way.
func checkHTML(markup string) error {
	if !utf8.ValidString(markup) {
		return fmt.Errorf("not UTF-8")
	}
	dec := xml.NewDecoder(strings.NewReader("<div>" + markup + "</div>"))
	var open []string
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if len(open) > 0 {
				if err := checkElement(token, open); err != nil {
					return err
				}
			}
			open = append(open, token.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
		default:
			return fmt.Errorf("a %T", token)
		}
	}
}

func checkElement(e xml.StartElement, open []string) error {
	attributes, ok := allowedElements[e.Name.Local]
	if !ok || e.Name.Space != "" {
		return fmt.Errorf("element %v", e.Name)
	}
	if e.Name.Local == "a" && slices.Contains(open, "a") {
		return fmt.Errorf("a link in a link")
	}
	values := map[string]string{}
	for _, a := range e.Attr {
		if !slices.Contains(attributes, a.Name.Local) || a.Name.Space != "" {
			return fmt.Errorf("attribute %v of %s", a.Name, e.Name.Local)
		}
		values[a.Name.Local] = a.Value
	}
	href := strings.ToLower(values["href"])
	switch e.Name.Local {
	case "a":
		web := strings.HasPrefix(href, "http://") || strings.HasPrefix(href, "https://") || strings.HasPrefix(href, "mailto:")
		if !web || values["rel"] != "noopener noreferrer nofollow" || values["target"] != "_blank" {
			return fmt.Errorf("link %v", values)
		}
	case "input":
		if _, disabled := values["disabled"]; !disabled || values["type"] != "checkbox" {
			return fmt.Errorf("input %v", values)
		}
	case "code":
		if class, ok := values["class"]; ok && (!strings.HasPrefix(class, "language-") || strings.ContainsAny(class, " \t\n")) {
			return fmt.Errorf("class %q", class)
		}
	}
	return nil
}

// nestedList returns a list with items nested in each other.
func nestedList(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return b.String()
}
