package render_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/render"
)

func TestRender_NothingVisible_NoParts(t *testing.T) {
	for _, text := range []string{"", " \n\t\r\n", "&nbsp;", "\u200b\u2060", "```\n```", "```go\n\n \n```", "#", "> ", "\u3164", "```", "\u00a0"} {
		if !render.Blank(text) {
			t.Errorf("%q is not blank", text)
		}
		if p := render.Telegram(text, 4096); p != nil {
			t.Errorf("%q: telegram %v", text, p)
		}
		if p := render.Slack(text, 4000); p != nil {
			t.Errorf("%q: slack %q", text, p)
		}
		if p := render.Discord(text, 2000); p != nil {
			t.Errorf("%q: discord %q", text, p)
		}
		if p := render.Plain(text, 4096); p != nil {
			t.Errorf("%q: plain %q", text, p)
		}
	}
}

// Text without markup stays readable everywhere, and where nothing has to be escaped it is
// the same.
func TestRender_TextWithoutMarkup_Unchanged(t *testing.T) {
	for _, text := range []string{
		"hello", "snake_case_name and x_1_2", "two\nlines", "a\n\nb", "https://example.org/a_b?c=d", "see www.example.org, joe@example.org",
		"日本語 (中文) русский", "👩‍👩‍👧 🇩🇪 👍🏽", "1 + 2 = 3; 50% off: \"now\" 'here'", "10:30 - 11:00", "no\u00a0break", "a-b - c", "email me!",
	} {
		for name, got := range map[string][]string{
			"telegram": {render.Telegram(text, 4096)[0].Text}, "slack": render.Slack(text, 4000),
			"discord": render.Discord(text, 2000), "plain": render.Plain(text, 4096),
		} {
			if diff := cmp.Diff([]string{text}, got); diff != "" || render.Blank(text) {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
	const sums = "2*3*4 < 5, a||b||c & d"
	if got := render.Telegram(sums+"\r\nx\ry", 4096); got[0].Text != sums+"\nx\ny" || got[0].Entities != nil {
		t.Errorf("%+v", got)
	}
}

func TestDiscord(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"italic before a letter", "*a*b", `\*a\*b`},
		{"italic before a letter of another script", "*a*é", "_a_é"},
		{"italic that ends in a word", "(*a*)b *c*", "(_a_)b _c_"},
		{"underscores in italic", "*a_b* c_d", `_a\_b_ c_d`},
		{"italic at the end of bold, before a letter", "**a *b***c", "**a _b_**c"},
		{"italic before a link", "*a*[b](http://c.d)", "_a_[b](http://c.d)"},
		{"bold after bold", "**a** **b**", "**a** **b**"},
		{"strike after a tilde", `\~ ~~a~~`, `\~ ~~a~~`},
		{"bar before a spoiler", `\| ||a||`, `| ||a||`},
		{"bars at the edge of a spoiler", `||\|a||`, "||\u200b|a||"},
		{"code beside code", "`a`**`b`**", "`a`**`b`**"},
		{"brackets in a label", `[a \[1\]](https://d.e)`, `[a \[1\]](https://d.e)`},
		{"brackets in a label that are no pairs", `[a\]b \[c](https://d.e)`, `a]b \[c (https://d.e)`},
		{"link that is none", `\[a](https://d.e) [b\](https://d.e)`, `\[a](https://d.e) \[b](https://d.e)`},
		{"parentheses in an address", "[a](<https://d.e/(f)>)", "[a](https://d.e/%28f%29)"},
		{"backslash", `a\b \\ c:\\`, `a\\b \\ c:\\`},
		{"language", "```c++\nx\n```", "```c++\nx\n```"},
		{"language that is none", "```a/b\nx\n```", "```\nx\n```"},
		{"fence in an item", "- a\n  ```\n  b\n  ```\n  c", "- a\n```\nb\n```\n  c"},
		{"heading too long", "# " + strings.Repeat("a", 1200), `\# ` + strings.Repeat("a", 1200)},
		{"mention over two spans", "@**every**one", "@**every**one"},
		{"mention put together by escapes", "@\\everyone @\u200beveryone", "@\\\\everyone @\u200beveryone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tc.want}, render.Discord(tc.in, 2000)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSlack(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"quote that is none", `\> a` + "\n\n" + `a > b`, "\u200b&gt; a\n\na &gt; b"},
		{"in a word", "a**b**c", "a\u200b*b*\u200bc"},
		{"beside points", "(**b**), **c**.", "(*b*), *c*."},
		{"star in bold", `**a\* b**`, "*a\u200b* b*"},
		{"alone", "~/.bashrc *args it`s", "~/.bashrc *args it`s"},
		{"in pairs", "~/a ~/b and \\*args, \\*\\*kwargs", "~\u200b/a ~\u200b/b and *\u200bargs, *\u200b*\u200bkwargs"},
		{"beside a span", "**a** \\*b", "*a* *\u200bb"},
		{"star after a backtick", "**a\\`\\*b\\`**", "*aˋ\u200b*\u200bbˋ*"},
		{"marks in a label", "[a*b_](https://c.d)", "<https://c.d|a*b_>"},
		{"address with signs", `[a](<https://b.c/?d=e&f|g>)`, "<https://b.c/?d=e&amp;f%7Cg|a>"},
		{"label that ends the link", `[a> <!here](https://b.c)`, "<https://b.c|a&gt; &lt;!here>"},
		{"fence in a fence", "~~~\n```\n````\n~~~", "```\n`\u200b``\n`\u200b``\u200b`\n```"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tc.want}, render.Slack(tc.in, 4000)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTelegram_Links_KeptOrShown(t *testing.T) {
	for address, kept := range map[string]bool{
		"https://example.org": true, "http://1.2.3.4:80/x": true, "HTTPS://EXAMPLE.ORG": true, "https://t.me/joe": true,
		"http://localhost/x": false, "https://u@example.org": false, "https://exa%20mple.org": false, "http://.org": false,
		"mailto:a@b.c": false, "javascript:x": false, "tg:x": false, "tg://user?id=1": false, "TG://user?id=1": false, "tg:user?id=1": false, "tg://resolve?domain=joe": false,
		"ton://transfer/x": false, "tonsite://a.ton": false, "tel:1": false, "data:x": false, "ftp://a.b": false, "//a.b": false, "/x": false,
	} {
		got := render.Telegram("[label]("+address+")", 4096)
		if linked := len(got[0].Entities) > 0; linked != kept {
			t.Errorf("%s: %v", address, got)
		}
		shown := strings.ReplaceAll(got[0].Text, "\u200b", "")
		if !kept && !strings.Contains(shown, strings.TrimPrefix(address, "mailto:")) {
			t.Errorf("%s is lost: %v", address, got)
		}
	}
}

func TestTelegram_EmptyBlock_NoEntity(t *testing.T) {
	got := render.Telegram("a\n```\n\n```\nb", 4096)
	if diff := cmp.Diff([]render.Formatted{{Text: "a\n\nb"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTelegram_RingsAndTabs_AreKept(t *testing.T) {
	got := render.Telegram("A\u030angstro\u0308m @joe `a\u030a`\tb", 4096)
	want := render.Formatted{Text: "Ångstro\u0308m @\u200bjoe å    b", Entities: []render.Entity{{Type: "code", Offset: 16, Length: 1}}}
	if diff := cmp.Diff([]render.Formatted{want}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRender_LongAddresses_LeaveRoomForLabel(t *testing.T) {
	long := "https://example.org/" + strings.Repeat("x", 1500)
	if got := render.Discord("[a]("+long+")", 2000); len(got) != 1 || got[0] != "a ("+long+")" {
		t.Errorf("no room for a label: %q", got)
	}
	if got := render.Slack("[a]("+long+")", 2000); len(got) != 1 || got[0] != "a ("+long+")" {
		t.Errorf("no room for a label: %q", got)
	}
	if got := render.Telegram("[a]("+long+")[b]("+long+long+")", 4096); len(got) != 1 || !strings.HasPrefix(got[0].Text, "ab (https://example.org/xx") || len(got[0].Entities) != 1 {
		t.Errorf("%+v", got)
	}
	for _, got := range [][]string{render.Discord("![a](data:image/png;base64,"+strings.Repeat("x", 3000)+")", 2000), render.Plain("[a]("+long+long+")", 4096)} {
		if len(got) != 1 || len(got[0]) > 100 || !strings.HasPrefix(got[0], "a (") || !strings.HasSuffix(got[0], "xx…)") {
			t.Errorf("%q", got)
		}
	}
}

func TestPlain_LimitTooSmall_Raised(t *testing.T) {
	text := strings.Repeat("word ", 40)
	if diff := cmp.Diff(render.Plain(text, 64), render.Plain(text, -1)); diff != "" {
		t.Error(diff)
	}
}

// Each of these, repeated, makes much work if any step is quadratic in the length of its input.
// Allocations show that on a busy machine too, where time does not.
func TestRender_HostileText_AllocatesLittle(t *testing.T) {
	// Times the length of the text, with all four. It is below 2,000, but the race detector
	// keeps regular expressions from using their memory again; a square is 65,000.
	const maxAllocated = 30_000
	for _, bit := range []string{
		"*a ", "**a", "``a ", "[a](", "a@", "www.a.bc ", "a|", "\\*", "> a\n", "# *a\n", "|a|b\n|-|-\n", "@everyone ", "@a", "`a`@a", "tg://", "a\u0301", "  - a\n",
	} {
		text := strings.Repeat(bit, (64<<10)/len(bit))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		render.Telegram(text, 4096)
		render.Slack(text, 4000)
		render.Discord(text, 2000)
		render.Plain(text, 4096)
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / uint64(len(text)); n > maxAllocated {
			t.Errorf("%q: %d times its length", bit, n)
		}
	}
}

func TestTelegram_ManyEntities_InParts(t *testing.T) {
	address := "https://a.bc/" + strings.Repeat("d", 1990)
	for name, text := range map[string]string{
		"list":       strings.Repeat("- **item** uses `code`\n", 130),
		"short line": strings.Repeat("[a]("+address+") ", 20),
		"links":      strings.Repeat("[n](https://e.org/1) ", 120),
		"found":      strings.Repeat("[n](https://e.org/1) https://e.org #a /b a@b.cd\n", 30),
	} {
		parts, links := render.Telegram(text, 4096), 0
		for _, p := range parts {
			if err := checkEntities(p); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, e := range p.Entities {
				if e.URL != "" {
					links++
				}
			}
		}
		if want := strings.Count(text, "]("); links != want || len(parts) < 2 {
			t.Errorf("%s: %d links of %d in %d parts", name, links, want, len(parts))
		}
		if err := checkEntities(render.TelegramTail(text, 4096)); err != nil {
			t.Errorf("%s: tail: %v", name, err)
		}
	}
	if parts := render.Telegram("```\n"+strings.Repeat("#a /b\n", 200)+"```", 4096); len(parts) != 1 {
		t.Errorf("code in %d parts", len(parts))
	}
}
