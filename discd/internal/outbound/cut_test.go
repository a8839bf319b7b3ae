package outbound

import (
	"strings"
	"testing"
	"unicode/utf8"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/outboundtest"
	"arizuko/pkg/msg"
)

// described is a call as the golden file contains it.
type described struct {
	Call string
	Body discordapi.Params `json:",omitempty"`
	File string            `json:",omitempty"`
}

func describe(p adapter.Part) any {
	c := p.(call)
	d := described{Call: c.method + " " + c.route(), Body: c.body}
	if c.file != nil {
		d.File = c.file.Name
	}
	return d
}

// TestCut_RowsOfEachKind_MakeTheseCalls compares rows of every source, kind and destination with the
// calls of the golden file.
func TestCut_RowsOfEachKind_MakeTheseCalls(t *testing.T) {
	file := func(content string, names ...string) *msg.Message {
		m := &msg.Message{ChatJID: "discord:20", Kind: msg.KindFile, ReplyToID: "12", Content: content}
		for _, name := range names {
			m.Attachments = append(m.Attachments, msg.Attachment{Name: name, Path: name})
		}
		return m
	}
	on := func(kind msg.Kind, target, content string) *msg.Message {
		return &msg.Message{ChatJID: "discord:20", ThreadID: "40", Kind: kind, TargetID: target, Content: content, ReceivedAt: 1795262400000}
	}
	text := func(chat, thread, replyTo string) *msg.Message {
		return &msg.Message{
			ID: 5, ReceivedAt: 1795262400000, ChatJID: chat, ThreadID: thread, ReplyToID: replyTo, Content: "Hello **you** @everyone <@7>",
		}
	}
	long := strings.Repeat("0123456789 ", 400)
	rows := outboundtest.Rows{
		"long text":            {ChatJID: "discord:20", ReplyToID: "12", Content: long},
		"nothing":              {ChatJID: "discord:20"},
		"picture":              file("a *cat*", "cat.jpg"),
		"without caption":      file("", "cat.jpg"),
		"long caption":         file(long, "cat.jpg"),
		"several":              file("look", "cat.jpg", "song.mp3"),
		"file too large":       file("look", "big.zip"),
		"missing file":         file("look", "gone.zip"),
		"reaction":             on(msg.KindReaction, "12", "👍"),
		"reaction removed":     on(msg.KindReaction, "12", "-👍"),
		"reaction of a guild":  on(msg.KindReaction, "12:e:99", "done:123"),
		"reaction, no id":      on(msg.KindReaction, "m:join:7:1", "👍"),
		"reaction, no emoji":   on(msg.KindReaction, "12", ".."),
		"reaction with a path": on(msg.KindReaction, "12", "x/../../../users/@me?a#b"),
		"edit":                 on(msg.KindEdit, "12", "now `so`"),
		"long edit":            on(msg.KindEdit, "12", long),
		"empty edit":           on(msg.KindEdit, "12", ""),
		"edit, no id":          on(msg.KindEdit, "", "now so"),
		"delete":               on(msg.KindDelete, "12", ""),
		"poll":                 on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"multiple":true}`),
		"poll of an hour":      on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"closes_at":1795262400001}`),
		"poll of a day":        on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"closes_at":1795348800000}`),
		"poll of the past":     on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"closes_at":5}`),
		"poll of a year":       on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"closes_at":1826798400000}`),
		"closed poll":          on(msg.KindPoll, "1573669310562304000", `{"question":"Lunch?","options":["yes","*no*"],"multiple":false,"closes_at":0,"result":{"counts":[2,1],"voters":3}}`),
		"closed, no id":        on(msg.KindPoll, "i:12", `{"question":"Lunch?","options":["yes","*no*"],"multiple":false,"closes_at":0,"result":{"counts":[2,1],"voters":3}}`),
		"invalid poll":         on(msg.KindPoll, "", `lunch`),
	}
	rows.AddForEachSource(outboundtest.Rows{
		"dm":                   text("discord:dm-30", "", "12"),
		"channel":              text("discord:20", "", "12"),
		"thread":               text("discord:20", "40", "12"),
		"thread, no reply":     text("discord:20", "40", ""),
		"reply to a join":      text("discord:20", "", "m:join:7:1"),
		"reply to a command":   text("discord:20", "", "i:12"),
		"reply to an edit":     text("discord:dm-30", "", "12:e:99"),
		"invalid chat address": text("discord:seven", "", ""),
		"another platform":     text("telegram:7", "", ""),
		"invalid thread":       text("discord:20", "1.2", ""),
	})
	s := &Sender{Data: outboundtest.DataFolder(t, map[string]int64{"cat.jpg": 10, "big.zip": maxUpload + 1, "song.mp3": 10})}
	outboundtest.CompareParts(t, s, rows, describe)
}

func TestMark_RespectsLimit(t *testing.T) {
	d := &Sender{}
	parts, err := d.Cut(&msg.Message{ChatJID: "discord:20", Content: "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	if marked := d.Mark(parts[0]).(call); marked.body["content"] != "(possibly sent twice) Hello" || parts[0].(call).body["content"] != "Hello" {
		t.Errorf("%v of %v", marked.body, parts[0])
	}
	full := call{method: "POST", body: discordapi.Params{"content": strings.Repeat("é", maxText)}}
	if n := utf8.RuneCountInString(d.Mark(full).(call).body["content"].(string)); n != maxText {
		t.Errorf("a marked part has %d characters", n)
	}
	edit := call{method: "PATCH", body: discordapi.Params{"content": "Hello"}}
	if marked := d.Mark(edit).(call); marked.body["content"] != "Hello" {
		t.Errorf("an edit is marked: %v", marked.body)
	}
}

func TestNonce_DiffersForEachPart(t *testing.T) {
	used := map[string]bool{}
	for _, m := range []msg.Message{{ID: 1, ReceivedAt: 1795262400000}, {ID: 1, ReceivedAt: 1795262400001}, {ID: 2, ReceivedAt: 1795262400000}, {ID: 1<<63 - 1, ReceivedAt: 1<<53 - 1}} {
		for _, part := range []int{0, 1, 1000} {
			n := nonce(&m, part)
			if len(n) > maxNonce || used[n] || n != nonce(&m, part) {
				t.Errorf("row %d, part %d: %q", m.ID, part, n)
			}
			used[n] = true
		}
	}
}
