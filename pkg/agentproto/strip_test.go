package agentproto

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestStrip(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{"hello", "hello"},
		{"<think>plan</think>hello", "hello"},
		{"a <internal>x</internal>b", "a b"},
		{"<THINK>plan</Think>hello", "hello"},
		{"<think>a<think>b</think>c</think>d", "d"},
		{"<think>a<internal>b</think>c", "c"},
		{"<think>never closed", ""},
		{"a<internal>b<internal>c</internal>d", "a"},
		{"a<think>1</think>b<think>2</think>c", "abc"},
		{"<thi<think>x</think>nk>secret</think>shown", "shown"},
		{"<internal<think></think>>secret", ""},
		{"<thinking>shown</thinking>", "<thinking>shown</thinking>"},
		{"< think>shown", "< think>shown"},
		{"<thin\u212a>shown", "<thin\u212a>shown"},
		{"a</think>b", "a</think>b"},
		{"<think>x</thinkx></think>y", "y"},
		{"1 < 2 > 1", "1 < 2 > 1"},
		{"<think>x</think>\n\n  \nhello\n\nworld\n \n", "hello\n\nworld"},
		{"\r\n    code\r\n", "    code"},
		{" \n\t", ""},
	}
	for _, tt := range tests {
		if got := Strip(tt.in); got != tt.want {
			t.Errorf("Strip(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestStripProperties(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"<think>", "</think>", "<internal>", "</internal>", "<THINK>", "<thi", "nk>", "<inter", "nal>", "<", ">", "/", "a", " ", "\n", "\xff", "ſ",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
		got := Strip(text)
		for _, tag := range []string{"<think>", "<internal>"} {
			if strings.Contains(strings.ToLower(got), tag) {
				t.Fatalf("%s left in %q", tag, got)
			}
		}
		if again := Strip(got); again != got {
			t.Fatalf("not idempotent: %q, then %q", got, again)
		}
	})
}

// Every removal reveals the next tag: one pass per removal would take hours.
func TestStripIsLinear(t *testing.T) {
	const n = 50_000
	text := strings.Repeat("<thi", n) + "<think></think>" + strings.Repeat("nk></think>", n) + "shown"
	began := time.Now()
	if got := Strip(text); got != "shown" {
		t.Errorf("got %.40q", got)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestStripGrowing_ShowsNoBeginningOfATag(t *testing.T) {
	const text = "a <b> <INTERNAL>no<think>e</think></INTERNAL> c <intern <think>d"
	whole := Strip(text)
	for end := range len(text) + 1 {
		if got := StripGrowing(text[:end]); !strings.HasPrefix(whole, got) {
			t.Errorf("of %q is shown: %q", text[:end], got)
		}
	}
	if got := StripGrowing(text); got != whole {
		t.Errorf("of all is shown: %q", got)
	}
}
