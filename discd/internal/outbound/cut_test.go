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

var first = adapter.Identity{Platform: "discord", Daemon: "discd"} // account

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
	question := &msg.Ask{ID: 5, Options: []string{"1", "2", "3", "4", "5", "6"}}
	rows := outboundtest.Rows{
		"question":             {ID: 5, ReceivedAt: 1795262400000, ChatJID: "discord:20", ReplyToID: "12", Content: "**Sure?**", Ask: question},
		"long question":        {ID: 5, ReceivedAt: 1795262400000, ChatJID: "discord:20", Content: strings.Repeat("word ", 450), Ask: question},
		"answer":               {ID: 5, ReceivedAt: 1795262400000, ChatJID: "discord:20", ReplyToID: "12", Content: "**Done**", TurnID: 9, UndoUntil: 1},
		"long answer":          {ID: 5, ReceivedAt: 1795262400000, ChatJID: "discord:20", Content: strings.Repeat("word ", 450), TurnID: 9, UndoUntil: 1},
		"ended question":       {ChatJID: "discord:20", Kind: msg.KindEdit, TargetID: "12", Content: "**1**", Ask: question},
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
	s := &Sender{Identity: first, Data: outboundtest.DataFolder(t, map[string]int64{"cat.jpg": 10, "big.zip": maxUpload + 1, "song.mp3": 10})}
	outboundtest.CompareParts(t, s, rows, describe)
}

func TestMark_EachText_KeepsItsLimit(t *testing.T) {
	d := &Sender{Identity: first, Data: outboundtest.DataFolder(t, map[string]int64{"cat.jpg": 10})}
	cat := []msg.Attachment{{Name: "cat.jpg", Path: "cat.jpg"}}
	const chat = "discord:20"
	textOf := func(p adapter.Part) outboundtest.Text {
		body := p.(call).body
		if poll, ok := body["poll"].(discordapi.Poll); ok {
			return outboundtest.Text{Text: poll.Question.Text, Length: utf8.RuneCountInString(poll.Question.Text), Limit: maxQuestion}
		}
		text, _ := body["content"].(string)
		return outboundtest.Text{Text: text, Length: utf8.RuneCountInString(text), Limit: maxText}
	}
	inPlace := func(p adapter.Part) outboundtest.Text {
		c := p.(call)
		if c.file == nil {
			return outboundtest.Text{}
		}
		c.file = &adapter.File{Name: strings.Repeat("n", 255)}
		other, _ := c.otherForm(&discordapi.Error{Code: tooLarge})
		if got := textOf(*other).Text; !strings.HasSuffix(got, textOf(p).Text) {
			t.Errorf("the text is cut in place of the file: %.80q", got)
		}
		return textOf(*other)
	}
	question := &msg.Message{ChatJID: chat, Kind: msg.KindPoll, Content: (&msg.Poll{Question: strings.Repeat("why ", 75), Options: []string{"a", "b"}}).JSON()}
	outboundtest.CheckMarks(t, d, outboundtest.Rows{
		"short":     {ChatJID: chat, Content: "Hello"},
		"text":      {ChatJID: chat, Content: strings.Repeat("é", 3*maxText)},
		"with file": {ChatJID: chat, Kind: msg.KindFile, Content: strings.Repeat("é", maxText-markRoom-noticeRoom), Attachments: cat},
		"long text": {ChatJID: chat, Kind: msg.KindFile, Content: strings.Repeat("é", maxText-markRoom), Attachments: cat},
		"no text":   {ChatJID: chat, Kind: msg.KindFile, Attachments: cat},
		"poll":      question,
	}, textOf, inPlace)
	parts, err := d.Cut(question)
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(d.Mark(parts[0])).Text; !strings.HasSuffix(got, "…") {
		t.Errorf("the question does not say that it is cut: %q", got)
	}
	if edit := (call{method: "PATCH", body: discordapi.Params{"content": "Hello"}}); !edit.Repeatable() {
		t.Error("an edit must be repeatable, and never marked")
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
