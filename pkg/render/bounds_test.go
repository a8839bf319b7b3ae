package render

import (
	"slices"
	"strings"
	"testing"

	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		source     string
		chat, html bool // whether the limits are exceeded
	}{
		"empty":                 {"", false, false},
		"longest for HTML":      {strings.Repeat("a", htmlLimits.bytes), false, false},
		"too long for HTML":     {strings.Repeat("a", htmlLimits.bytes+1), false, true},
		"longest for chats":     {strings.Repeat("a", chatLimits.bytes), false, true},
		"too long for chats":    {strings.Repeat("a", chatLimits.bytes+1), true, true},
		"most delimiters":       {strings.Repeat("[*_~`", htmlLimits.delimiters/5), false, false},
		"one more":              {strings.Repeat("[*_~`", htmlLimits.delimiters/5) + "\n<", false, true},
		"in paragraphs":         {strings.Repeat(strings.Repeat("*", htmlLimits.delimiters)+"\n \t\n", 3), false, false},
		"most containers":       {strings.Repeat(">", maxDepth) + "a", false, false},
		"one container more":    {strings.Repeat("> ", maxDepth+1) + "a", true, true},
		"lists":                 {"a\n" + strings.Repeat("1. -\t", maxDepth/2+1), true, true},
		"containers in lines":   {strings.Repeat("> - a\n", 300), false, false},
		"signs within the line": {"a" + strings.Repeat("> ", 300), false, false},
		"rule":                  {strings.Repeat("-", 300), false, false},
	} {
		if got := chatLimits.exceeded(tc.source); got != tc.chat {
			t.Errorf("%s: for chats %v", name, got)
		}
		if got := htmlLimits.exceeded(tc.source); got != tc.html {
			t.Errorf("%s: for HTML %v", name, got)
		}
	}
}

func TestContainers(t *testing.T) {
	for line, want := range map[string]int{
		"": 0, "a > b": 0, ">": 1, "> - a": 2, "1. -\t* x": 3, strings.Repeat(">", 100) + "a": 100, "---": 0, "  2) + > a": 3,
	} {
		if got := containers(line); got != want {
			t.Errorf("%q: %d, not %d", line, got, want)
		}
	}
}

func TestTables_WithExcessCellsOrTooLarge_AreText(t *testing.T) {
	wide := "|" + strings.Repeat("a|", 200) + "\n|" + strings.Repeat("-|", 200) + "\n"
	for source, want := range map[string]bool{
		"|a|b|\n|-|-|\n|c|d|":               true,
		"|a|b|\n|-|-|\n|c|":                 true,
		"a | b\n--|--\nc \\| d | e":         true,
		"|a|b|\n|-|-|\n|c|d|e|":             false,
		"|a|\n|-|\n|b|c|":                   false,
		wide + strings.Repeat("|b|\n", 10):  true,
		wide + strings.Repeat("|b|\n", 100): false,
	} {
		for name, p := range map[string]parser.Parser{"chat": chatParser, "html": htmlParser} {
			first := p.Parse(text.NewReader([]byte(source))).FirstChild()
			if _, is := first.(*east.Table); is != want {
				t.Errorf("%s: %.60q: a table: %t", name, source, is)
			}
		}
	}
}

// Text that would take too long to parse stays as it is, the text beside it does not.
func TestPlain_OverLimits_LeftAsText(t *testing.T) {
	busy := strings.Repeat("*a* ", 5000) + "x"
	table := "|" + strings.Repeat("a|", 200) + "\n|" + strings.Repeat("-|", 200) + "\n" + strings.Repeat("|b|\n", 100)
	for name, source := range map[string]string{
		"busy paragraph": busy, "large table": table, "row with too many cells": "|a|\n|-|\n|b|c|", "deep": strings.Repeat("> ", 150) + "a",
		"long": strings.Repeat("**a** ", chatLimits.bytes/6+1),
	} {
		got := Plain(source, 1<<30)
		if len(got) != 1 || strings.TrimSpace(got[0]) != strings.TrimSpace(source) {
			t.Errorf("%s: %.100q", name, got)
		}
	}
	got := Plain("**x**\n\n"+busy+"\n\n**y**\n\n```\n"+busy+"\n```", 1<<30)
	want := "x\n\n" + busy + "\n\ny\n\n" + busy
	if len(got) != 1 || got[0] != want {
		t.Errorf("%d parts, %d long, want %d: %.100q", len(got), len(got[0]), len(want), got)
	}
}

func TestPlain_DeepNesting_Flattened(t *testing.T) {
	var source strings.Builder
	for i := range 50 {
		source.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	got := Plain(source.String(), 1<<20)
	lines := strings.Split(got[0], "\n")
	if len(lines) != 50 || lines[49] != strings.Repeat(" ", maxIndent)+"- a" {
		t.Errorf("%q", lines)
	}
	if got := Plain(strings.Repeat("- ", 50)+"a", 1<<20); len(got[0]) > 2*maxIndent+3 {
		t.Errorf("%q", got)
	}
}

func TestClusters(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "e\u0301a": 2, "👩‍👩‍👧x": 2, "🇩🇪🇫🇷": 2, "👍🏽👍": 2, "❤️❤️": 2, "각각": 2, "\u1100\u1161\u11a8a": 2,
		"নিনি": 2, "🏴\U000e0067\U000e0062\U000e007f!": 2, strings.Repeat("\u0301", 24): 2, "a\u200bb": 3,
	} {
		l := line{spans: appendSpan(nil, text, nil)}
		if got := len(l.cutPoints(100)); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// A character can begin in one span and continue in the next ones.
func TestClusters_OverSpans(t *testing.T) {
	bolds := []mark{{kind: bold}}
	for name, tc := range map[string]struct {
		texts []string // every second one is bold
		want  []cutPoint
	}{
		"words":               {[]string{"a ", "b"}, []cutPoint{{0, 1, 1}, {0, 2, 1}, {1, 1, 2}}},
		"accent":              {[]string{"e", "\u0301x"}, []cutPoint{{1, 2, 0}, {1, 3, 2}}},
		"accents in each":     {[]string{"e", "\u0301", "\u0302"}, []cutPoint{{2, 2, 2}}},
		"flag":                {[]string{"🇩", "🇪🇫🇷"}, []cutPoint{{1, 4, 0}, {1, 12, 2}}},
		"sentence and accent": {[]string{"a.", "\u0301 b"}, []cutPoint{{0, 1, 0}, {1, 2, 1}, {1, 3, 1}, {1, 4, 2}}},
	} {
		var l line
		for i, text := range tc.texts {
			l.spans = appendSpan(l.spans, text, bolds[:i%2])
		}
		if got := l.cutPoints(100); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Where markup leaves no room for a single character, the text comes without markup.
func TestDiscord_NoRoomForMarkup_PlainText(t *testing.T) {
	var source strings.Builder
	for i := range maxIndent / 2 {
		source.WriteString("> " + strings.Repeat("  ", i) + "- a\n")
	}
	source.WriteString("> " + strings.Repeat(" ", maxIndent) + "- ~~**_||[text](http://example.org/12345678901)||_**~~")
	got := Discord(source.String(), minLimit)
	if last := got[len(got)-1]; last != "text" {
		t.Errorf("%q", got)
	}
}

func TestClean(t *testing.T) {
	if got, want := clean("a\r\nb\rc\u2028d\u2029e\tf\x00\xff\x85"), "a\nb\nc\nd\ne\tf\ufffd\ufffd"; got != want {
		t.Errorf("%q", got)
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"abc": 3, "日本": 4, "e\u0301": 1, "👍🏽": 2, "👩‍👩‍👧": 2, "🇩🇪": 2, "한글": 4, "ｱ": 1, "a\u200bb": 2} {
		if got := width(text); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", `\*\a\\`: `*\a\`, "&amp;lt;": "&lt;", `\&lt;`: "&lt;", "&copy;&#42;&#x2A;": "©**", "&notit; &amp &;": "&notit; &amp &;", "&#0;": "\ufffd",
	} {
		if got := decode(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
