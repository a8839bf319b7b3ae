package mdbounds

import (
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

func TestContainers(t *testing.T) {
	for line, want := range map[string]int{
		"": 0, "a > b": 0, ">": 1, "> - a": 2, "1. -\t* x": 3, strings.Repeat(">", 100) + "a": 100, "---": 0, "  2) + > a": 3,
	} {
		if got := Containers(line); got != want {
			t.Errorf("%q: %d, not %d", line, got, want)
		}
	}
}

func TestTablesAreWholeOrText(t *testing.T) {
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
		md := goldmark.New(goldmark.WithParserOptions(parser.WithParagraphTransformers(
			util.Prioritized(WholeTables{extension.NewTableParagraphTransformer()}, 200))))
		first := md.Parser().Parse(text.NewReader([]byte(source))).FirstChild()
		if _, is := first.(*east.Table); is != want {
			t.Errorf("%.60q: a table: %t", source, is)
		}
	}
}
