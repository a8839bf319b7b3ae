package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"

	"arizuko/pkg/mdbounds"
)

const (
	// maxText is the longest text that is read as markdown, in bytes.
	maxText = 64 << 10
	// maxDelimiters is how many characters that may be markup stand between two empty lines.
	// The parser's time grows with their square: with so many it takes about 5 ms.
	maxDelimiters = 2000
	// maxDepth is how deep elements stand in each other. Browsers flatten what is deeper than 512.
	maxDepth = 100
)

// takesLong tells, without parsing, which texts would keep the parser busy.
func takesLong(source string) bool {
	if len(source) > maxText {
		return true
	}
	delimiters := 0
	for line := range strings.Lines(source) {
		if strings.TrimSpace(line) == "" {
			delimiters = 0
			continue
		}
		for i := range len(line) {
			if strings.IndexByte("*_~`[]()<|", line[i]) >= 0 {
				delimiters++
			}
		}
		if delimiters > maxDelimiters || mdbounds.Containers(line) > maxDepth {
			return true
		}
	}
	return false
}

func tooDeep(tree ast.Node) bool {
	depth, deep := 0, false
	// The walk fails only with what this function returns.
	_ = ast.Walk(tree, func(_ ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		if depth++; depth > maxDepth {
			deep = true
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return deep
}
