package agentproto

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	for _, tt := range []struct {
		name, text, kept string
		missing          int
	}{
		{"fits", strings.Repeat("x", 2048), strings.Repeat("x", 2048), 0},
		{"without a line end", strings.Repeat("x", 5000), strings.Repeat("x", 2048-maxRemark), 4},
		{"at a line end", strings.Repeat(line, 50), strings.TrimSuffix(strings.Repeat(line, 19), "\n"), 4},
		{"inside a character", strings.Repeat("€", 1000), strings.Repeat("€", 640), 2},
		{"inside code", "```go\n" + strings.Repeat("x", 5000), "```go\n" + strings.Repeat("x", 2048-maxRemark-6) + "\n```", 4},
		{"after code", "```\nx\n```\n\n" + strings.Repeat("x", 3000), "```\nx\n```\n\n" + strings.Repeat("x", 2048-maxRemark-11), 2},
		{"inside long fences", "~~~~\n```\n~~~\n" + strings.Repeat(line, 40), "~~~~\n```\n~~~\n" + strings.TrimSuffix(strings.Repeat(line, 19), "\n") + "\n~~~~", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.kept
			if tt.missing > 0 {
				want += fmt.Sprintf("\n\n(This answer is too long and is cut here. Missing: %d KiB.)", tt.missing)
			}
			if got := Cut(tt.text, 2048); got != want {
				t.Errorf("%d bytes, end %q; want %d, end %q", len(got), tail(got), len(want), tail(want))
			}
		})
	}
}

func TestCut_AnyText_FitsFrame(t *testing.T) {
	for _, piece := range []string{"x", "\x01", "é", "€", "\xff", "\"", "\u2028"} {
		f := Frame{Status: StatusOK, Result: Cut(strings.Repeat(piece, 2*MaxResult), MaxResult), NewSessionID: strings.Repeat(piece, MaxSessionID)}
		if err := WriteFrame(io.Discard, f); err != nil {
			t.Errorf("%q: %v", piece, err)
		}
	}
}

func tail(s string) string { return s[max(0, len(s)-120):] }

var remark = regexp.MustCompile(`\n\n\(This answer is too long and is cut here\. Missing: (\d+) KiB\.\)$`)

// FuzzCut checks the size of Cut's output, and that it and the remark make up the whole.
func FuzzCut(f *testing.F) {
	f.Add("```\n", uint16(3000), uint16(0))
	f.Add("漢字\n", uint16(900), uint16(700))
	f.Add("~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n", uint16(90), uint16(1))
	f.Fuzz(func(t *testing.T, piece string, times, over uint16) {
		if !utf8.ValidString(piece) {
			return
		}
		text := strings.Repeat(piece, min(int(times), 1<<16/(len(piece)+1)))
		limit := 1<<10 + int(over)
		got := Cut(text, limit)
		if len(text) <= limit {
			if got != text {
				t.Fatalf("a text of %d bytes was cut to %d", len(text), len(got))
			}
			return
		}
		if len(got) > limit || !utf8.ValidString(got) {
			t.Fatalf("%d bytes of %d, valid %v", len(got), limit, utf8.ValidString(got))
		}
		said := remark.FindStringSubmatch(got)
		if said == nil {
			t.Fatalf("no remark: %q", tail(got))
		}
		missing, _ := strconv.Atoi(said[1])
		kept := strings.TrimSuffix(got, said[0])
		unclosed := kept[:max(0, strings.LastIndexByte(kept, '\n'))] // if a code block was closed
		if !isBeginning(kept, text, missing) && !isBeginning(unclosed, text, missing) {
			t.Fatalf("the remark says %d KiB, of %d bytes %d are kept: %q", missing, len(text), len(kept), tail(kept))
		}
		if len(kept) < (limit-maxRemark)*15/16-utf8.UTFMax {
			t.Fatalf("kept %d bytes of %d", len(kept), limit)
		}
	})
}

func isBeginning(kept, text string, missing int) bool {
	return strings.HasPrefix(text, kept) && missing == (len(text)-len(kept)+1023)/1024
}
