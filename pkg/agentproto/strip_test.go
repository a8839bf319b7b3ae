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
		{"Yes.\n<internal>b<internal>c</internal>d", "Yes."},
		{"a.<think>1</think>\nb.<think>2</think>\nc", "a.\nb.\nc"},
		{"<thinking>1</thinking><Thought a=\"b\">2</thought >\n<reasoning>\n3\n</reasoning>\n\nshown", "shown"},
		{"\ufeff\u200b<seed:think>1</seed:think>shown", "\ufeff\u200bshown"},
		{"< think>shown", "< think>shown"},
		{"<thinker>shown", "<thinker>shown"},
		{"a</think>b", "a</think>b"},
		{"<think>x</thinkx></think>y", "y"},
		{"<think>\n\n</think>\n\nshown", "shown"},
		{"<think>Asked about the <think> tag and `</think>`. Ok.</think>Shown, with `</think>`.", "Shown, with `</think>`."},
		{"<think>it's a ` or\n```\ncode\n</think>\nshown `<think>`", "shown `<think>`"},
		// The template has put the opening tag into the prompt.
		{"They ask.\n</think>\n\nshown", "shown"},
		{"They ask.</think>Shown", "Shown"},
		{"They ask. </thinking>\n\nshown", "shown"},
		{"</think>\n\nshown", "shown"},
		{"Say.\n\n</think>", "Say.\n\n</think>"}, // all would be cut by a guess
		{"It is 42.\n</think>\n<internal>done</internal>", "It is 42.\n</think>"},
		{"They ask.\n</think>\n<think>never closed", ""},
		{"They ask.\n</think>\nIt is.\n</think>", "It is.\n</think>"},
		// Words.
		{"The tag `<think>` opens a block", "The tag `<think>` opens a block"},
		{"The tag <think> opens a block, </think> closes it.", "The tag <think> opens a block, </think> closes it."},
		{"<think> opens a block and </think> closes it.", "<think> opens a block and </think> closes it."},
		{"<think> opens, `</think>` closes.", "<think> opens, `</think>` closes."},
		{"<internal> is for notes.", "<internal> is for notes."},
		{"Write <internal>…</internal> around notes.", "Write <internal>…</internal> around notes."},
		{"标签<think>用于思考</think>。", "标签<think>用于思考</think>。"},
		{"- <think>a</think>\n> <think>\n1. <think>a", "- <think>a</think>\n> <think>\n1. <think>a"},
		{"It printed:\n> <think>\n> hm\n> </think>\nSee?", "It printed:\n> <think>\n> hm\n> </think>\nSee?"},
		{"```py\n<think>\n</think>\nre.sub(r\"<think>.*?</think>\", t)\n```", "```py\n<think>\n</think>\nre.sub(r\"<think>.*?</think>\", t)\n```"},
		{"~~~\n<internal>x</internal>\n```\n</think>\n~~~", "~~~\n<internal>x</internal>\n```\n</think>\n~~~"},
		{"1. so:\n   ````\n   ```\n   <think>\n   ````\nend", "1. so:\n   ````\n   ```\n   <think>\n   ````\nend"},
		{"So:\n\n    <think>x</think>", "So:\n\n    <think>x</think>"},
		{"`` ` <internal>x</internal> `` and `</think>`.", "`` ` <internal>x</internal> `` and `</think>`."},
		{"&lt;think&gt;x", "&lt;think&gt;x"},
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

func TestStrip_AnyPieces_NoneAreInvented(t *testing.T) {
	pieces := []string{
		"<think>", "</think>", "<internal>", "</internal>", "<THINKING x>", "\n```\n", "`", "<thi", "nk>", "<", ">", "a", ". ", " b", "\n", "\xff", "ſ",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "pieces"), "")
		for _, got := range []string{Strip(text), StripGrowing(text)} {
			if !isSubsequence(got, text) {
				t.Fatalf("%q is not in %q", got, text)
			}
		}
	})
}

func isSubsequence(part, whole string) bool {
	for i := 0; i < len(whole) && part != ""; i++ {
		if whole[i] == part[0] {
			part = part[1:]
		}
	}
	return part == ""
}

// Blocks without an end must not be looked into again and again.
func TestStrip_HostileText_TakesNoTime(t *testing.T) {
	const n = 50_000
	for _, piece := range []string{
		"\n<think>```\n</think>", "x. <think>", "<internal>", ". <think> a\n", "\n<think>a <think>", "\n<think> a", "`<think>``", "<think ",
	} {
		began := time.Now()
		Strip(strings.Repeat(piece, n))
		StripGrowing(strings.Repeat(piece, n))
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%q took %v", piece, took)
		} else {
			t.Log(piece, took)
		}
	}
}

func TestBrokenOff(t *testing.T) {
	for text, want := range map[string]bool{
		"<think>\nLet me see": true, "\n<internal>why": true, "<internal>why</internal>": false, "Yes.\n<think>": false, "": false,
	} {
		if got := BrokenOff(text); got != want {
			t.Errorf("BrokenOff(%q) = %v", text, got)
		}
	}
}

func TestStripGrowing_ShowsNothingHidden(t *testing.T) {
	const text = "a <b> <INTERNAL>no<think>e</think></INTERNAL> c `<think>` <intern\n<thinking>d `</think>`\n</thinking>\ne"
	if got := StripGrowing(text); got != Strip(text) {
		t.Errorf("of all is shown: %q", got)
	}
	pieces := []string{
		text, "<think>r</think>", "\n<think>\nr\n```\n</think>\n", "<internal>r</internal>", "\n<Thinking a=\"b\"> r `x` </Thinking>", "\n```\n<think>c</think>\n```\n",
		"`<think>`", "\n> <think>\n> </think>\n", "\n    <think>d", "\n- ", "\n", "w ", "Yes. ", " <think> b", " </think> b", ".", "日", "。", "<thinker>", "a<b",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 7).Draw(t, "pieces"), "")
		whole := Strip(text)
		for end := range text {
			if got := StripGrowing(text[:end]); !strings.HasPrefix(whole, got) {
				t.Fatalf("of %q is shown: %q, in the end %q", text[:end], got, whole)
			}
		}
	})
}
