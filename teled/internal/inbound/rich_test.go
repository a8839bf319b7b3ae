package inbound

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"arizuko/teled/internal/telegramapi"
)

// richOf converts a rich message of blocks, given as JSON.
func richOf(t *testing.T, blocks string) rich {
	t.Helper()
	var m telegramapi.RichMessage
	if err := json.Unmarshal([]byte(`{"blocks":`+blocks+`}`), &m); err != nil {
		t.Fatal(err)
	}
	return readRich(&m, us)
}

func TestReadRich_Blocks_BecomeMarkdown(t *testing.T) {
	for blocks, want := range map[string]string{
		`7`:               "",
		`[]`:              "",
		`[7,"x",null,[]]`: "",
		`[{"type":"heading","size":3,"text":"A\nB"},{"type":"paragraph","text":"c"}]`:                                                                                                  "### A B\n\nc",
		`[{"type":"heading","size":-1e99,"text":["A"]},{"type":"heading","size":1e99,"text":"B"}]`:                                                                                     "# A\n\n###### B",
		`[{"type":"paragraph","text":[{"type":"bold","text":"a"},{"type":"italic","text":["b",{"type":"code","text":"c"}]}]}]`:                                                         "**a**_b`c`_",
		`[{"type":"paragraph","text":[{"type":"strikethrough","text":"a"},{"type":"spoiler","text":" b"},{"type":"x_new","text":" c"}]}]`:                                              "~~a~~ b c",
		`[{"type":"paragraph","text":[{"type":"url","text":"a","url":"https://a"},{"type":"url","text":"https://b","url":"https://b"}]}]`:                                              "[a](https://a)https://b",
		`[{"type":"paragraph","text":[{"type":"custom_emoji","alternative_text":"🙂"},{"type":"anchor","name":"n"},{"type":"mathematical_expression","expression":"x^2"}]}]`:            "🙂$x^2$",
		"[{\"type\":\"pre\",\"language\":\"go\",\"text\":\"a\\n```\\nb\"}]":                                                                                                            "````go\na\n```\nb\n````",
		`[{"type":"list","items":[{"label":"1.","blocks":[{"type":"paragraph","text":"a"},{"type":"list","items":[{"label":"•","blocks":[{"type":"paragraph","text":"b"}]}]}]}]}]`:     "1. a\n\n  - b",
		`[{"type":"list","items":[{"value":7,"blocks":[{"type":"paragraph","text":"a"}]},{"label":"","has_checkbox":true,"blocks":[{"type":"paragraph","text":"b"}]},{"blocks":[]}]}]`: "7. a\n- [ ] b",
		`[{"type":"blockquote","blocks":[{"type":"paragraph","text":"a"},{"type":"paragraph","text":"b"}],"credit":"Bob"}]`:                                                            "> a\n>\n> b\n> Bob",
		`[{"type":"table","cells":[[{"text":"a|b"},{}],[{"text":"c\nd"}]],"caption":"e"}]`:                                                                                             "| a\\|b |  |\n|---|---|\n| c d |\n\ne",
		`[{"type":"details","summary":"a","blocks":[{"type":"divider"},{"type":"footer","text":"b"}]}]`:                                                                                "a\n\n---\n\nb",
		`[{"type":"buttons","buttons":[{"text":"Pay","url":"https://p"},{"text":"No","callback_data":"n"}]}]`:                                                                          "[button: Pay, https://p] [button: No]",
		`[{"type":"map","location":{"latitude":1,"longitude":2},"caption":{"text":"here","credit":"Bob"}}]`:                                                                            "[location: 1, 2]\nhere\nBob",
		`[{"type":"hologram","text":"a","blocks":[{"type":"paragraph","text":"b"}],"caption":{"text":"c"}}]`:                                                                           "a\n\nb\n\nc",
		`[{"type":"photo","photo":"none"}]`: "[photo]",
		`[{"type":"paragraph","text":[{"type":"date_time","text":"soon","unix_time":1795348800},{"type":"date_time","text":" late","unix_time":1e99}]}]`: "soon (2026-11-22 12:00 UTC) late",
	} {
		if got := richOf(t, blocks); got.text != want || got.addressed || got.files != nil {
			t.Errorf("%s\n is %q %+v\nwant %q", blocks, got.text, got, want)
		}
	}
}

func TestReadRich_BotNamed_Counts(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"mention","text":"@arizuko_bot","username":"arizuko_bot"}`:                                           "",
		`["hi ",{"type":"mention","text":"@arizuko_bot","username":"Arizuko_Bot"},", ",{"type":"bold","text":"you"}]`: "hi, **you**",
		`[{"type":"mention","text":"@arizuko_bot"}," hi"]`:                                                            "hi",
		`["hi ",{"type":"bold","text":{"type":"text_mention","text":"Ari","user":{"id":99}}}]`:                        "hi",
		`[{"type":"bot_command","text":"/new@arizuko_bot","bot_command":"/new"}," go"]`:                               "/new go",
	} {
		got := richOf(t, `[{"type":"list","items":[{"blocks":[{"type":"paragraph","text":`+text+`}]}]},{"type":"paragraph","text":"end"}]`)
		if want = strings.TrimLeft("- "+want+"\n\nend", "- \n"); strings.TrimPrefix(got.text, "- ") != want || !got.addressed {
			t.Errorf("%s is %q, %t, want %q", text, got.text, got.addressed, want)
		}
	}
	for _, text := range []string{`"@arizuko_bot hi"`, `{"type":"mention","text":"@bob"}`, `{"type":"text_mention","text":"A","user":{"id":"99"}}`, `{"type":"bot_command","text":"/new@weather_bot"}`} {
		if got := richOf(t, `[{"type":"paragraph","text":`+text+`}]`); got.addressed || got.text == "" {
			t.Errorf("%s is %q, %t", text, got.text, got.addressed)
		}
	}
}

// A rich message is bounded, whatever it has most of, and says that something is missing.
func TestReadRich_TooMuch_IsCut(t *testing.T) {
	repeated := func(s string, n int) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	for name, blocks := range map[string]string{
		"text":   `[{"type":"paragraph","text":"` + strings.Repeat("ż", maxRichText) + `"}]`,
		"parts":  `[{"type":"paragraph","text":[` + repeated(`{"type":"bold","text":""}`, maxRichText) + `]}]`,
		"blocks": `[` + repeated(`{"type":"divider"}`, 2*maxRichText) + `]`,
		"cells":  `[{"type":"table","cells":[` + repeated(`[{},{},{},{}]`, maxRichText) + `]}]`,
		"depth":  strings.Repeat(`[{"type":"blockquote","blocks":`, 3000) + `[]` + strings.Repeat(`}]`, 3000),
		"nested": `[{"type":"paragraph","text":` + strings.Repeat(`{"type":"bold","text":[`, 2000) + `"x"` + strings.Repeat(`]}`, 2000) + `}]`,
		"files":  `[` + repeated(`{"type":"document","document":{"file_id":"D"}}`, maxRichFiles+1) + `]`,
	} {
		got := richOf(t, blocks)
		if len(got.text) > 5*maxRichText || len(got.files) > maxRichFiles || !utf8.ValidString(got.text) || !strings.HasSuffix(got.text, "[the rest is left out]") {
			t.Errorf("%s: %d bytes, %d files, end %q", name, len(got.text), len(got.files), got.text[max(0, len(got.text)-30):])
		}
	}
}

func TestReadRich_Media_AreFiles(t *testing.T) {
	got := richOf(t, `[{"type":"slideshow","blocks":[{"type":"photo","photo":[{"file_id":"P"}],"caption":{"text":"a"}},{"type":"voice_note","voice_note":{"file_id":"V"}}]},
		{"type":"document","document":{"file_id":"D","file_name":"x] [admin.pdf"}}]`)
	if want := "[file: photo.jpg]\na\n\n[file: voice.ogg]\n\n[file: x] [admin.pdf]"; got.text != want {
		t.Errorf("got %q", got.text)
	}
	if len(got.files) != 3 || got.files[0].FileID+got.files[1].FileID+got.files[2].FileID != "PVD" {
		t.Errorf("files %+v", got.files)
	}
}
