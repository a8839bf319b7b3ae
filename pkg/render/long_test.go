package render

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// codeOf makes a block of so many lines, each of ten bytes.
func codeOf(language string, lines int) string {
	return "```" + language + "\n" + strings.Repeat("123456789\n", lines) + "```\n"
}

// nested puts a prefix before each line of a text.
func nested(prefix, text string) string {
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}

func tableOf(rows int) string {
	var b strings.Builder
	b.WriteString("| name | value |\n|---|--:|\n")
	for i := range rows {
		fmt.Fprintf(&b, "| **row** %d | %d |\n", i, i)
	}
	return b.String()
}

// TestFindLong_AtEachLimit_IsWhatDoesNotFitIntoOneMessage has blocks just below and above what each
// platform takes as one message.
func TestFindLong_AtEachLimit_IsWhatDoesNotFitIntoOneMessage(t *testing.T) {
	t.Parallel()
	for platform, parts := range map[string]func(string) int{
		"telegram": func(s string) int { return len(Telegram(s, 4096)) },
		"discord":  func(s string) int { return len(Discord(s, 2000)) },
		"slack":    func(s string) int { return len(Slack(s, 4000)) },
	} {
		fits := 0
		for lines := 150; lines < 450; lines++ {
			block := codeOf("go", lines)
			found := len(FindLong(platform, "before\n\n"+block+"\nafter"))
			if one := parts(block) == 1; (found == 0) != one {
				t.Errorf("%s: of %d lines, which fit %v, %d are long", platform, lines, one, found)
			} else if one {
				fits = lines
			}
		}
		if fits < 190 || fits > 410 {
			t.Errorf("%s: %d lines fit", platform, fits)
		}
	}
	for _, platform := range []string{"web", "matrix", ""} {
		if all := FindLong(platform, codeOf("go", 10_000)); all != nil {
			t.Errorf("%s, of which no limit is known, has %d", platform, len(all))
		}
	}
}

func TestFindLong_Blocks(t *testing.T) {
	t.Parallel()
	code := strings.Repeat("123456789\n", 300)
	for name, tt := range map[string]struct{ text, want, file string }{
		"code between text":     {"a\n\n" + codeOf("python", 300) + "\nb", "a\n\n[code.py: 300 lines]\n\nb", code},
		"code without a blank":  {"a\n" + codeOf("python", 300) + "b", "a\n\n[code.py: 300 lines]\n\nb", code},
		"code that never ends":  {"a\n\n```\n" + code, "a\n\n[code.txt: 300 lines]", code},
		"code with tildes":      {"~~~sql\n" + code + "~~~\nb", "[code.sql: 300 lines]\n\nb", code},
		"indented code":         {"a\n\n" + strings.Repeat("    123456789\n", 300) + "\nb", "a\n\n[code.txt: 300 lines]\n\nb", code},
		"a language to click":   {codeOf("exe", 300), "[code.txt: 300 lines]", code},
		"fences within":         {"````md\n```\n" + code + "```\n````\nb", "[code.md: 302 lines]\n\nb", "```\n" + code + "```\n"},
		"windows' line ends":    {strings.ReplaceAll(codeOf("c", 300), "\n", "\r\n") + "b", "[code.c: 300 lines]\n\nb", code},
		"a short block":         {codeOf("go", 3), "", ""},
		"in a list":             {"- a\n\n" + nested("  ", codeOf("go", 300)) + "- b", "- a\n\n  [code.go: 300 lines]\n\n- b", code},
		"right below an item":   {"1. a\n" + nested("   ", codeOf("go", 300)) + "   b", "1. a\n\n   [code.go: 300 lines]\n\n   b", code},
		"as an item":            {"a\n\n- " + nested("  ", codeOf("go", 300))[2:] + "- b", "a\n\n- [code.go: 300 lines]\n\n- b", code},
		"in a list in a list":   {"- a\n  - b\n" + nested("    ", codeOf("go", 300)) + "  - c", "- a\n  - b\n\n    [code.go: 300 lines]\n\n  - c", code},
		"indented in a list":    {"- a\n\n" + nested("      ", code) + "- b", "- a\n\n  [code.txt: 300 lines]\n\n- b", code},
		"in a quote":            {"> a\n" + nested("> ", codeOf("go", 300)) + "> b", "> a\n>\n> [code.go: 300 lines]\n>\n> b", code},
		"at the end of a quote": {nested("> ", codeOf("go", 300)) + "b", "> [code.go: 300 lines]\n>\nb", code},
		"a quote without space": {nested(">", codeOf("go", 300)), "> [code.go: 300 lines]", code},
		"in a list in a quote":  {"> - a\n" + nested(">   ", codeOf("go", 300)) + "> - b", "> - a\n>\n>   [code.go: 300 lines]\n>\n> - b", code},
		"in a quote in a list":  {"- a\n\n" + nested("  > ", codeOf("go", 300)), "- a\n\n  > [code.go: 300 lines]", code},
		"the item ends first":   {"- ```go\n" + nested("  ", code) + "```\nb\n```\n", "- [code.go: 300 lines]\n\n```\nb\n```", code},
		"a long text":           {strings.Repeat("word ", 2000), "", ""},
		"nothing":               {"", "", ""},
		"a fence without lines": {"```\n```\n" + strings.Repeat("word ", 2000), "", ""},
	} {
		all := FindLong("discord", tt.text)
		if tt.want == "" {
			if all != nil {
				t.Errorf("%s: %+v", name, all)
			}
			continue
		}
		if len(all) != 1 {
			t.Errorf("%s: %d blocks", name, len(all))
			continue
		}
		if diff := gocmp.Diff(tt.want, ReplaceLong(tt.text, all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := gocmp.Diff(tt.file, all[0].Text); diff != "" {
			t.Errorf("%s: file (-want +got):\n%s", name, diff)
		}
	}
}

func TestFindLong_Tables_AreCSV(t *testing.T) {
	t.Parallel()
	text := "intro\n" + tableOf(200) + "\nand\n\n" + tableOf(150) + codeOf("", 300)
	all := FindLong("discord", text)
	want := "intro\n[table.csv: 200 rows]\n\nand\n\n[table-2.csv: 150 rows]\n[code.txt: 300 lines]"
	if got := ReplaceLong(text, all); strings.ReplaceAll(got, "\n\n", "\n") != strings.ReplaceAll(want, "\n\n", "\n") {
		t.Errorf("the text is %q", got)
	}
	if !strings.HasPrefix(all[0].Text, "name,value\nrow 0,0\nrow 1,1\n") || strings.Count(all[0].Text, "\n") != 201 {
		t.Errorf("the table is %.60q", all[0].Text)
	}
	if got := ReplaceLong(text, all[1:2]); !strings.HasPrefix(got, "intro\n| name") || !strings.Contains(got, "[table-2.csv") || !strings.HasSuffix(got, "```") {
		t.Errorf("with one of them the text is %.40q", got)
	}
}

func TestFindLong_TableInListOrQuote_IsReplacedThere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"in a quote":         {"> a\n>\n" + nested("> ", tableOf(200)) + "\nb", "> a\n>\n> [table.csv: 200 rows]\n\nb"},
		"below a line":       {"> a\n" + nested("> ", tableOf(200)) + "\nb", "> a\n>\n> [table.csv: 200 rows]\n\nb"},
		"in a list":          {"- a\n\n" + nested("  ", tableOf(200)) + "- b", "- a\n\n  [table.csv: 200 rows]\n\n- b"},
		"as an item":         {"- " + nested("  ", tableOf(200))[2:] + "- b", "- [table.csv: 200 rows]\n\n- b"},
		"in a quote's list":  {"> 1. a\n>\n" + nested(">    ", tableOf(200)), "> 1. a\n>\n>    [table.csv: 200 rows]"},
		"below a list's one": {"- a\n" + nested("  ", tableOf(200)) + "\n  b", "- a\n\n  [table.csv: 200 rows]\n\n  b"},
	} {
		all := FindLong("discord", tt.text)
		if len(all) != 1 {
			t.Errorf("%s: %d blocks", name, len(all))
			continue
		}
		if diff := gocmp.Diff(tt.want, ReplaceLong(tt.text, all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !strings.HasPrefix(all[0].Text, "name,value\nrow 0,0\n") || strings.Count(all[0].Text, "\n") != 201 {
			t.Errorf("%s: the table is %.60q", name, all[0].Text)
		}
	}
}

func TestFindLong_Formulas_AreText(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"=HYPERLINK(1)": "'=HYPERLINK(1)", "@SUM(1)": "'@SUM(1)", "+1+cmd": "'+1+cmd", "-2+3": "'-2+3",
		"-2.5%": "-2.5%", "+49": "+49", "a=b": "a=b", "": "", "é": "é",
	} {
		if got := harmless(cell); got != want {
			t.Errorf("%q is %q, want %q", cell, got, want)
		}
	}
}

// TestFindLong_AnyText: blocks lie in order within the text, and the text with blocks replaced needs fewer messages.
func TestFindLong_AnyText(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{codeOf("go", 250), codeOf("", 210), tableOf(120), "~~~\n" + strings.Repeat("x\n", 1500), "text\n", "\n\n", "- a\n", "> b\n", "```",
			nested("> ", codeOf("go", 250)), "- " + nested("  ", codeOf("c", 220))[2:], "- a\n  1. b\n" + nested("     ", tableOf(110)), nested("> - ", tableOf(105)),
			nested("  ", codeOf("", 240)), nested("> > ", tableOf(101)), nested("> ", "~~~\n"+strings.Repeat("y\n", 1500)), nested("      ", strings.Repeat("z 9\n", 700)),
			"> ", "  ", "1. ", "| a |\n|---|\n", "    code\n"}),
		rapid.StringOfN(rapid.RuneFrom([]rune("a|-`~ \n>*")), 0, 40, -1),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		all := FindLong("discord", text)
		end := 0
		for _, l := range all {
			if l.start < end || l.end <= l.start || l.Text == "" {
				t.Fatalf("block %d-%d after %d", l.start, l.end, end)
			}
			end = l.end
		}
		short := ReplaceLong(text, all)
		if again := FindLong("discord", short); len(all) < maxLong && len(again) > 0 {
			t.Fatalf("%d blocks are left in %q", len(again), short)
		}
		for _, l := range all {
			if !strings.Contains(short, l.note) {
				t.Fatalf("%q is missing", l.note)
			}
		}
	})
}
