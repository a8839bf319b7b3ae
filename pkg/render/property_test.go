package render_test

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/render"
)

// bits are the elements of markdown, and texts that platforms take for markup or a mention.
var bits = []string{
	"a", "b ", "word ", "Some words. ", "Ende! ", "x_y_z", "2*3*4", "日本語", "。", "é", "e\u0301", "👩‍👩‍👧", "🇩🇪", "👍🏽", " ", "  ", "\t", "\n", "\n\n", "\n\n", "\r\n",
	"*", "**", "***", "_", "__", "~", "~~", "|", "||", "`", "``", "```", "\\", "[", "]", "(", ")", "](", "![", "<", ">", "&", "#", "-", "+", "=", ".", ":",
	"**bold** ", "_it_", "~~st~~", "||sp||", "`code`", "`` a`b ``", "[label](https://a.b/c_d)", "[x](javascript:y)", "![pic](http://p.q/r.png)", "https://ex.org/_a_*b* ", "www.a.b ", "m@a.bc ", "<http://u.v>",
	"\n# ", "\n### ", "\n##### ", "\n> ", "\n> > ", "\n- ", "\n  - ", "\n1. ", "\n- [ ] ", "\n- [x] ", "\n---\n", "\n```go\n", "\n```\n", "\n    ", "\n~~~\n", "\n|a|b|\n|-|-|\n|c|d|\n", "\n> ```\n> x\n> ```\n",
	"@everyone", "@here", "<@123>", "<@&4>", "<#5>", "<!channel>", "<!here>", "<@U1|x>", "&lt;!here&gt;", "&#64;everyone", "\\@here", "&#10;", "&nbsp;", "<b>", "</b>", "<!-- -->", "@joe", "`@`", "tg://user?id=1", "[t](tg://user?id=1)", "steam://run/1", "://", "a.b/@joe", "https://a.b/@joe ", "\x00", "\xff", "\u202e", "\u200b",
}

func markdown() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(bits), 0, 80).Draw(t, "bits"), "")
	})
}

func TestRender_AnyText_ValidParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := markdown().Draw(t, "text")
		if err := check(text, rapid.IntRange(64, 300).Draw(t, "limit")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRender_CutText_LosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := markdown().Draw(t, "text")
		limit := rapid.IntRange(200, 300).Draw(t, "limit")
		whole, cut := render.Telegram(text, 1<<20), render.Telegram(text, limit)
		same(t, "telegram", texts(whole), texts(cut))
		same(t, "plain", unquoted(render.Plain(text, 1<<20)), unquoted(render.Plain(text, limit)))
		// Links and languages stand in the text again where they are cut.
		text = strings.NewReplacer("http", "", "www", "", "@", "", "go", "", "](", "").Replace(text)
		same(t, "slack", letters(render.Slack(text, 1<<20)), letters(render.Slack(text, limit)))
		same(t, "discord", letters(render.Discord(text, 1<<20)), letters(render.Discord(text, limit)))
	})
}

func same(t *rapid.T, platform, whole, cut string) {
	if solid(whole) != solid(cut) {
		t.Fatalf("%s\nwhole %q\ncut   %q", platform, whole, cut)
	}
}

func texts(parts []render.Formatted) string {
	var all []string
	for _, p := range parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n")
}

func unquoted(parts []string) string {
	return strings.ReplaceAll(strings.Join(parts, "\n"), ">", "")
}

func letters(parts []string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, strings.Join(parts, "\n"))
}

// solid returns a text without the characters that a cut drops.
func solid(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, s)
}

// Discord's markdown is close to the one that is read: what is written for it must read as the
// same text again, so nothing in the text has become markup.
func TestDiscord_Text_ReadsBackAsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := literal(t)
		want := strings.Join(render.Plain(text, 1<<20), "")
		got := strings.Join(render.Plain(strings.ReplaceAll(strings.Join(render.Discord(text, 1<<20), ""), "\u200b", ""), 1<<20), "")
		if solid(want) != solid(got) {
			t.Fatalf("text %q\nwant %q\ngot  %q", text, want, got)
		}
	})
}

// literal is markdown of text alone: all that could be markup is escaped.
func literal(t *rapid.T) string {
	chars := rapid.SliceOfN(rapid.SampledFrom([]rune("ab1日 *_~|`<>[]()#-+.!\\&:")), 1, 30).Draw(t, "chars")
	var b strings.Builder
	for _, c := range chars {
		if unicode.IsPunct(c) || unicode.IsSymbol(c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

func TestRender_EscapedText_NoMarkup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := literal(t)
		for _, p := range render.Telegram(text, 1<<20) {
			if len(p.Entities) > 0 {
				t.Fatalf("%q: %v", text, p.Entities)
			}
		}
		for _, p := range render.Slack(text, 1<<20) {
			if i := slackMark(p); i >= 0 {
				t.Fatalf("%q: %q", text, p[i:])
			}
		}
	})
}

// slackMark finds a character that Slack could take for the beginning or end of a span: one of
// several that is not inside of a word and has something directly beside it.
func slackMark(p string) int {
	runes := []rune(p)
	for i, r := range runes {
		prev, next := ' ', ' '
		if i > 0 {
			prev = runes[i-1]
		}
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		blank := func(r rune) bool { return unicode.IsSpace(r) || r == '\u200b' }
		word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
		switch {
		case r != '<' && r != '>' && strings.Count(p, string(r)) == 1:
		case r == '*', r == '_', r == '~':
			alone, inside := blank(prev) && blank(next), word(prev) && word(next)
			if !alone && !inside {
				return len(string(runes[:i]))
			}
		case r == '`', r == '<', r == '>':
			return len(string(runes[:i]))
		}
	}
	return -1
}

// Formatted text reads back with the same formatting.
func TestDiscord_Formatted_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := formatted(t, marks)
		want := render.Telegram(text, 1<<20)
		got := render.Telegram(strings.Join(render.Discord(text, 1<<20), ""), 1<<20)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("text %q\n%s", text, diff)
		}
	})
}

// The options of polls and questions are shown as they were written.
func TestRender_EscapedLine_Unchanged(t *testing.T) {
	pieces := []string{"a", "B ", "- ", "+ ", "---", "1. ", "&amp;", "&#65;", "https://a.b/c_d*e ", "m_x@a.bc ", "*", "_", "~~", "||", "`", "[", "](", ")", "<", "std:x", ">", "#", "\\", "!", "="}
	rapid.Check(t, func(t *rapid.T) {
		line := strings.TrimSpace(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, -1).Draw(t, "pieces"), ""))
		if got := render.Telegram("1. "+msg.EscapeLine(line), 4000); len(got) != 1 || strings.TrimSpace(got[0].Text) != "1. "+line {
			t.Fatalf("%q: %v", line, got)
		}
	})
}

// marks may stand around words, each once.
var marks = [][2]string{{"**", "**"}, {"_", "_"}, {"~~", "~~"}, {"||", "||"}, {"[", "](https://a.bc/d_e)"}}

// formatted draws words, some with marks around them.
func formatted(t *rapid.T, marks [][2]string) string {
	words := []string{"a", "x\\_\\_y", "x\\*z", "1", "日", "snake_case_name", "2*3", "x\\~\\~y", "x\\|\\|y", "p\\[q\\]\\(r\\)s", "\\#x", "x\\`y", "<b>x", `C:\\\_x`}
	var out []string
	for range rapid.IntRange(1, 3).Draw(t, "words") {
		i := rapid.IntRange(0, len(marks)).Draw(t, "mark")
		if i == len(marks) {
			out = append(out, rapid.SampledFrom(words).Draw(t, "word"))
			continue
		}
		rest := slices.Delete(slices.Clone(marks), i, i+1)
		out = append(out, marks[i][0]+formatted(t, rest)+marks[i][1])
	}
	return strings.Join(out, " ")
}

// The words of an answer arrive on all surfaces, in order, in however many parts.
func TestRender_Words_SameOnAllSurfaces(t *testing.T) {
	pieces := []string{
		"word ", "**注意：**请先备份。", "**「引用」**と", "*强调。*后", "**단어(영어)**은 ", "~~สวัสดี~~ครับ ", "مرحبا ", "ו**«שלום»** ", "snake_case ", "2*3*4 ", "10~20 和 30~40 ", "查看*.go和*.md ",
		"`<think>` ", "<internal>x</internal> ", "`a*b` ", "[label](https://a.bc/d) ", "||hidden|| ", "\n\n", "\n", "\n- ", "\n1. ", "\n> ", "\n# ", "\n```zz\nif a < b {}\n```\n", "\n\n|ka|kb|\n|-|-|\n|c|d|\n\n", "&amp; ", "\\* ", "🙂 ",
		"[file](src/a_b.go) ", "[![](http://p.q/r.png)](ci)", "![x](data:d,", "[ ](y)", "\n- [x] ", "](", ")", "[", "\\", "|", "\n|e|f|g|\n", "`", "\n```\n", "\n~~~zz\n", "\n    ", "\n===\n", "\n---\n", "\t", "<!-- c -->", "&copy", "&#x41;", "&NotEqualTilde;", "[^1]", "\n[^1]: note\n", "e\u0301", "\u2028", "\u202e", "\x00",
	}
	tag, link := regexp.MustCompile(`<[^>]*>`), regexp.MustCompile(`https://a.bc/d|zz`)
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 40).Draw(t, "pieces"), "")
		limit := rapid.IntRange(300, 4000).Draw(t, "limit")
		numbered := strings.Contains(source, "1.") // digits that HTML does not spell out
		read := func(parts ...string) string {
			return strings.Map(func(r rune) rune {
				written := r > unicode.MaxASCII && (unicode.IsPunct(r) || unicode.IsSymbol(r)) && !strings.ContainsRune("•◦▪─│—☐☑", r)
				if unicode.IsLetter(r) && r != 'ˋ' || unicode.Is(unicode.Mn, r) || written || unicode.IsDigit(r) && !numbered {
					return r
				}
				return -1
			}, link.ReplaceAllString(strings.Join(parts, " "), ""))
		}
		want := read(html.UnescapeString(tag.ReplaceAllString(render.HTML(source), "")))
		for name, got := range map[string]string{
			"telegram": read(texts(render.Telegram(source, limit))), "discord": read(render.Discord(source, limit)...),
			"slack": read(html.UnescapeString(strings.Join(render.Slack(source, limit), " "))),
		} {
			if got != want {
				t.Fatalf("%s of %q: %q, want %q", name, source, got, want)
			}
		}
	})
}

// Each entity covers exactly the words that its marks are around, in whichever part they are.
func TestTelegram_Entities_CoverTheirWords(t *testing.T) {
	kinds := [][3]string{{"bold", "**", "**"}, {"italic", "_", "_"}, {"strikethrough", "~~", "~~"}, {"spoiler", "||", "||"}, {"text_link", "[", "](https://a.bc/d)"}}
	fillers := []string{"x ", "👩‍👩‍👧 ", "e\u0301 ", "مرحبا ", "\n", "\n\n- ", "\n> ", "\n\n", "@joe ", "\u200b ", "&#x1f600; ", "`a🙂` ", "🇩🇪 "}
	rapid.Check(t, func(t *rapid.T) {
		var source strings.Builder
		want := map[string][]string{} // the kinds of each word's entities
		for i := range rapid.IntRange(1, 20).Draw(t, "words") {
			source.WriteString(strings.Join(rapid.SliceOfN(rapid.SampledFrom(fillers), 1, 4).Draw(t, "fillers"), ""))
			word := fmt.Sprintf("w%d🙂w", i)
			marked := word
			for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(kinds), 0, 3, rapid.ID).Draw(t, "marks") {
				marked = k[1] + marked + k[2]
				want[word] = append(want[word], k[0])
				slices.Sort(want[word])
			}
			source.WriteString(marked + " ")
		}
		got := map[string][]string{}
		for _, p := range render.Telegram(source.String(), rapid.IntRange(64, 400).Draw(t, "limit")) {
			for _, e := range p.Entities {
				if word := covered(p, e); slices.Contains([]string{"bold", "italic", "strikethrough", "spoiler", "text_link"}, e.Type) {
					got[word] = append(got[word], e.Type)
				}
			}
		}
		for word := range got {
			slices.Sort(got[word])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", source.String(), diff)
		}
	})
}

// Models put marks between punctuation and letters where a script has no spaces.
func TestRender_MarksInScriptsWithoutSpaces(t *testing.T) {
	for in, want := range map[string]string{
		"**注意：**请先备份。": "<strong>注意：</strong>请先备份。", "**「引用」**と": "<strong>「引用」</strong>と", "*强调。*后": "<em>强调。</em>后",
		"これは**「A」**と**「B」**です": "これは<strong>「A」</strong>と<strong>「B」</strong>です", "**단어(영어)**은": "<strong>단어(영어)</strong>은",
		"请**备份**和**还原**。": "请<strong>备份</strong>和<strong>还原</strong>。", "将**.env**文件": "将<strong>.env</strong>文件", "~~删除。~~后": "<del>删除。</del>后",
		"ו**«x»**": "ו<strong>«x»</strong>", "**50%**的`a`": "<strong>50%</strong>的<code>a</code>",
		"查看*.go和*.md文件": "查看*.go和*.md文件", "2 ** 3 ** 4": "2 ** 3 ** 4", "2*3*4 snake_case_name": "2*3*4 snake_case_name", "10~20 和 30~40": "10~20 和 30~40",
		"**a.**b": "**a.**b",
	} {
		if got := strings.TrimSpace(render.HTML(in)); got != "<p>"+want+"</p>" {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if strings.Contains(want, "<strong>") {
			tg := render.Telegram(in, 4096)
			if slack := render.Slack(in, 4000)[0]; strings.Contains(tg[0].Text, "*") || strings.Contains(slack, "**") || len(tg[0].Entities) == 0 {
				t.Errorf("%s: telegram %+v, slack %s", in, tg, slack)
			}
		}
	}
}
