package msg

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// read is the text that Exact has written.
func read(text string) string {
	text = strings.ReplaceAll(text, "↩\n", "")
	text = regexp.MustCompile(`\n\[([0-9,]+) line breaks\]\n`).ReplaceAllStringFunc(text, func(m string) string { return strings.Repeat("\n", count(m)) })
	text = regexp.MustCompile(`\[([0-9,]+) blanks?\]`).ReplaceAllStringFunc(text, func(m string) string { return strings.Repeat(" ", count(m)) })
	text = strings.ReplaceAll(text, "⇥", "\t")
	return regexp.MustCompile(`\\u[0-9a-f]{4}|\\U[0-9a-f]{8}`).ReplaceAllStringFunc(text, func(m string) string {
		c, _ := strconv.ParseInt(m[2:], 16, 32)
		return string(rune(c))
	})
}

func count(mark string) int {
	n, _ := strconv.Atoi(regexp.MustCompile(`[^0-9]`).ReplaceAllString(mark, ""))
	return n
}

// Two texts never give the same output.
func TestExact_CanBeReadBack(t *testing.T) {
	t.Parallel()
	pieces := []string{"a", "ab", "1", " ", strings.Repeat(" ", 30), "\t", "\n", "\n\n\n\n", "\r", "\\", "\\u", "\\U", "u00", "[", "30 blanks]", "[30 blanks]", "[1 blank]", "[4 line breaks]",
		"↩", "⇥", "\u200b", "\u202e", "\u00a0", "\u2800", "\ufe0f", "\u0430", "\u0440\u043e", "e\u0301", "\u037e", "\U000e0041", "\x7f", "界", "🙂", strings.Repeat("y", 60)}
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(rt, "pieces"), "")
		shown := Exact(text)
		if got := read(shown); got != text {
			rt.Fatalf("%q is shown as %q, which reads %q", text, shown, got)
		}
		for line := range strings.SplitSeq(shown, "\n") {
			if len([]rune(line)) > maxWidth+1 || strings.HasSuffix(line, " ") || strings.Contains(line, strings.Repeat(" ", maxBlanks+1)) {
				rt.Fatalf("%q is shown as %q", text, shown)
			}
		}
		if line := ExactLine(text); strings.ContainsAny(line, "\n\t") || strings.Contains(line, "  ") || read(line) != text {
			rt.Fatalf("%q is shown as %q", text, line)
		}
	})
}
