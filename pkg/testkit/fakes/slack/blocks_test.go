package slack_test

import (
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/slack"
)

// Slack refuses a whole message for one block.
func TestPostMessage_InvalidBlock_IsRefused(t *testing.T) {
	r := start(t, slack.Options{})
	team := r.Channel("team", r.User("Alice", "alice"))
	of := func(n int, one string) string { return strings.Repeat(","+one, n)[1:] }
	header := func(text string) string {
		return `{"type":"header","text":{"type":"plain_text","text":"` + text + `"}}`
	}
	section := func(rest string) string { return `{"type":"section","text":{"type":"mrkdwn","text":"x"}` + rest + `}` }
	const word, cell = `{"type":"mrkdwn","text":"x"}`, `{"type":"raw_text","text":"x"}`
	table := func(rows string) string { return `{"type":"table","rows":[` + rows + `]}` }
	markdown := func(n int) string { return `{"type":"markdown","text":"` + strings.Repeat("ř", n) + `"}` }
	image := func(fields string) string { return `{"type":"image"` + fields + `}` }
	for name, tt := range map[string]struct{ valid, invalid string }{
		"header length":   {header(strings.Repeat("ř", 150)), header(strings.Repeat("ř", 151))},
		"header form":     {header("x"), `{"type":"header","text":` + word + `}`},
		"fields":          {section(`,"fields":[` + of(10, word) + `]`), section(`,"fields":[` + of(11, word) + `]`)},
		"field":           {section(`,"fields":[` + word + `]`), section(`,"fields":[{"type":"mrkdwn","text":"` + strings.Repeat("x", 2001) + `"}]`)},
		"context":         {`{"type":"context","elements":[` + of(10, word) + `]}`, `{"type":"context","elements":[` + of(11, word) + `]}`},
		"empty context":   {`{"type":"context","elements":[` + word + `]}`, `{"type":"context","elements":[]}`},
		"image":           {image(`,"alt_text":"x","image_url":"https://e.org/a.png"`), image(`,"image_url":"https://e.org/a.png"`)},
		"image twice":     {image(`,"alt_text":"x","slack_file":{"id":"F1"}`), image(`,"alt_text":"x","slack_file":{"id":"F1"},"image_url":"https://e.org/a.png"`)},
		"markdown":        {markdown(12_000), markdown(12_001)},
		"markdown in sum": {markdown(6_000) + "," + markdown(6_000), markdown(6_000) + "," + markdown(6_001)},
		"rows":            {table(of(100, "["+cell+"]")), table(of(101, "["+cell+"]"))},
		"columns":         {table("[" + of(20, cell) + "]"), table("[" + of(21, cell) + "]")},
		"empty cell":      {table("[" + cell + "]"), table(`[{"type":"raw_text","text":""}]`)},
		"tables":          {table("[" + cell + "]"), table("["+cell+"]") + "," + table("["+cell+"]")},
		"long table":      {table(`[{"type":"raw_text","text":"` + strings.Repeat("x", 10_000) + `"}]`), table(`[{"type":"raw_text","text":"` + strings.Repeat("x", 10_001) + `"}]`)},
		"rich text":       {`{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[]}]}`, `{"type":"rich_text","elements":[{"type":"text","text":"x"}]}`},
		"block ids":       {section(`,"block_id":"a"`) + "," + section(`,"block_id":"b"`), section(`,"block_id":"a"`) + "," + section(`,"block_id":"a"`)},
		"block id":        {section(`,"block_id":"` + strings.Repeat("x", 255) + `"`), section(`,"block_id":"` + strings.Repeat("x", 256) + `"`)},
	} {
		t.Run(name, func(t *testing.T) {
			r.must("chat.postMessage", "channel", team.ChannelID, "text", "x", "blocks", "["+tt.valid+"]")
			r.refuse("invalid_blocks", "chat.postMessage", "channel", team.ChannelID, "text", "x", "blocks", "["+tt.invalid+"]")
		})
	}
}

func TestHistory_InvalidRange_IsRefused(t *testing.T) {
	r := start(t, slack.Options{})
	team := r.Channel("team", r.User("Alice", "alice"))
	for _, valid := range []string{"", "0", "1764000000", "1764000000.000100"} {
		r.must("conversations.history", "channel", team.ChannelID, "oldest", valid)
	}
	for _, invalid := range []string{"yesterday", "-1", "1764000000.000100x", "1.7e9"} {
		r.refuse("invalid_ts_oldest", "conversations.history", "channel", team.ChannelID, "oldest", invalid)
		r.refuse("invalid_ts_latest", "conversations.replies", "channel", team.ChannelID, "ts", "1764000000.000100", "latest", invalid)
	}
}
