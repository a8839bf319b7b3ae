package markdown

import (
	"strings"
	"testing"
)

func TestTakesLong(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		want   bool
	}{
		"empty":               {"", false},
		"at the limit":        {strings.Repeat("a", maxText), false},
		"above it":            {strings.Repeat("a", maxText+1), true},
		"delimiters":          {strings.Repeat("[*_~`", maxDelimiters/5), false},
		"one more":            {strings.Repeat("[*_~`", maxDelimiters/5) + "\n<", true},
		"in paragraphs":       {strings.Repeat(strings.Repeat("*", maxDelimiters)+"\n \t\n", 3), false},
		"containers":          {strings.Repeat(">", maxDepth) + "a", false},
		"deeper":              {strings.Repeat("> ", maxDepth+1) + "a", true},
		"lists":               {"a\n" + strings.Repeat("1. -\t", maxDepth/2+1), true},
		"containers in lines": {strings.Repeat("> - a\n", 300), false},
		"in the middle":       {"a" + strings.Repeat("> ", 300), false},
		"rule":                {strings.Repeat("-", 300), false},
	} {
		if got := takesLong(tc.source); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
