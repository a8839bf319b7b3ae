package inbound

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// contentOf is the content of a message with a text and more fields, in JSON.
func contentOf(t testing.TB, text, fields string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	in, err := convert(payload([]byte(`{"type":"message","channel":"C1","user":"U7","bot_id":"B7","ts":"1764000001.000100","text":` + string(quoted) + `,` + fields + `}`)))
	if err != nil || len(in.Messages) != 1 {
		t.Fatalf("%d rows, %v", len(in.Messages), err)
	}
	return in.Messages[0].Content
}

func TestContent_HugeOrDeep_IsBounded(t *testing.T) {
	cell := `{"type":"raw_text","text":"` + strings.Repeat("é", 100) + `"}`
	row := "[" + strings.Repeat(cell+",", 19) + cell + "]"
	block := func(kind, inner string, depth int) string {
		return strings.Repeat(`{"type":"`+kind+`","elements":[`, depth) + inner + strings.Repeat("]}", depth)
	}
	section := `{"type":"section","text":{"type":"mrkdwn","text":"word"}}`
	forward := strings.Repeat(`{"is_share":true,"text":"again","attachments":[`, 50) + `{"text":"the last"}` + strings.Repeat("]}", 50)
	for name, tt := range map[string]struct {
		fields    string
		cut, last bool
	}{
		"table":         {`"blocks":[{"type":"table","rows":[` + strings.Repeat(row+",", 200) + row + `]}]`, true, false},
		"blocks":        {`"blocks":[` + strings.Repeat(section+",", 10_000) + section + `]`, false, false},
		"deep blocks":   {`"blocks":[` + block("carousel", section, 1000) + `]`, false, false},
		"forwards":      {`"attachments":[` + forward + `]`, true, false},
		"cards":         {`"attachments":[` + strings.Repeat(`{"text":"`+strings.Repeat("long ", 1000)+`"},`, 400) + `{"text":"the last"}]`, false, false},
		"one long text": {`"attachments":[{"text":"` + strings.Repeat("é ", 100_000) + `"}]`, true, false},
	} {
		got := contentOf(t, "hello", tt.fields)
		if !strings.HasPrefix(got, "hello") || len(got) > maxBeside+200 || strings.Contains(got, "the last") != tt.last {
			t.Errorf("%s: %d bytes: %.100s", name, len(got), got)
		}
		if strings.Contains(got, cutText) != tt.cut {
			t.Errorf("%s is cut: %v", name, !tt.cut)
		}
	}
}

// TestContent_RichTextOfTheText_IsNotRepeated: Slack makes rich text of what apps post.
func TestContent_RichTextOfTheText_IsNotRepeated(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab1é漢😀<>&*_")), 1, 5, -1), 1, 8).Draw(rt, "words")
		raw := strings.Join(words, " ")
		encoded, _ := json.Marshal(raw)
		text := escape.Replace(raw)
		got := contentOf(t, text, `"blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":`+string(encoded)+`}]}]}]`)
		if got != raw {
			rt.Fatalf("%q became %q", raw, got)
		}
	})
}

// TestContent_WordsOfBlocks_AreNeverLost: no word of a block is lost, whatever the text is.
func TestContent_WordsOfBlocks_AreNeverLost(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "ab", "9", "-9", "19", "#9", "C", "C++", "no", "not"})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(word, 1, 4).Draw(rt, "text"), " ")
		block := strings.Join(rapid.SliceOfN(word, 1, 3).Draw(rt, "block"), " ")
		got := contentOf(t, text, `"blocks":[{"type":"section","text":{"type":"mrkdwn","text":"`+block+`"}}]`)
		padded := " " + strings.ReplaceAll(got, "\n", " ") + " "
		if !strings.HasPrefix(got, text) || !strings.Contains(padded, " "+block+" ") {
			rt.Fatalf("%q and %q became %q", text, block, got)
		}
	})
}
