package outbound

import (
	"strings"
	"testing"
	"unicode/utf8"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/outboundtest"
	"arizuko/pkg/msg"
)

// described is a call as the golden file contains it.
type described struct {
	Method  string
	Channel string `json:",omitempty"`
	Thread  string `json:",omitempty"`
	Text    string `json:",omitempty"`
	TS      string `json:",omitempty"`
	Emoji   string `json:",omitempty"`
	File    string `json:",omitempty"`
	Tag     any    `json:",omitempty"`
}

func describe(p adapter.Part) any {
	c := p.(call)
	d := described{Method: c.method, Channel: c.channel, Thread: c.thread, Text: c.text, TS: c.ts, Emoji: c.emoji}
	if c.file != nil {
		d.File = c.file.Name
	}
	if c.method == postMessage {
		d.Tag = c.tag.Metadata().EventPayload
	}
	return d
}

// TestCut_RowsOfEachKind_MakeTheseCalls compares rows of every source, kind and destination with the
// calls of the golden file.
func TestCut_RowsOfEachKind_MakeTheseCalls(t *testing.T) {
	const channel, dm, ts = "slack:C1", "slack:D1", "1764000000.000100"
	file := func(content string, names ...string) *msg.Message {
		m := &msg.Message{ChatJID: channel, ThreadID: ts, Kind: msg.KindFile, ReplyToID: ts, Content: content}
		for _, name := range names {
			m.Attachments = append(m.Attachments, msg.Attachment{Name: name, Path: name})
		}
		return m
	}
	poll := func(content string) *msg.Message {
		return &msg.Message{ChatJID: channel, ThreadID: ts, Kind: msg.KindPoll, Content: content}
	}
	text := func(chat, thread, replyTo string) *msg.Message {
		return &msg.Message{
			ID: 7, ReceivedAt: 1764000000123, ChatJID: chat, ThreadID: thread, ReplyToID: replyTo, Content: "Hello **you** <!channel>",
		}
	}
	rows := outboundtest.Rows{
		"long text":          {ChatJID: channel, ThreadID: ts, Content: strings.Repeat("0123456789 ", 800)},
		"nothing":            {ChatJID: channel},
		"file":               file("a *cat*", "cat.jpg"),
		"without text":       file("", "cat.jpg"),
		"file, long text":    file(strings.Repeat("word ", 1000), "cat.jpg"),
		"several":            file("look", "cat.jpg", "song.mp3"),
		"file too large":     file("look", "big.zip"),
		"empty file":         file("look", "empty.txt", "cat.jpg"),
		"missing file":       file("look", "gone.zip"),
		"reaction":           {ChatJID: channel, Kind: msg.KindReaction, TargetID: ts, Content: "👍"},
		"reaction by name":   {ChatJID: channel, Kind: msg.KindReaction, TargetID: ts, Content: ":party-parrot:"},
		"reaction removed":   {ChatJID: channel, Kind: msg.KindReaction, TargetID: ts, Content: "-👍"},
		"reaction, no id":    {ChatJID: channel, Kind: msg.KindReaction, TargetID: "m:join:7:1.2", Content: "👍"},
		"reaction, no name":  {ChatJID: channel, Kind: msg.KindReaction, TargetID: ts, Content: "🦖"},
		"edit":               {ChatJID: channel, ThreadID: ts, Kind: msg.KindEdit, TargetID: ts, Content: "now `so`"},
		"long edit":          {ChatJID: channel, ThreadID: ts, Kind: msg.KindEdit, TargetID: ts, Content: strings.Repeat("0123456789 ", 500)},
		"edit, no id":        {ChatJID: channel, Kind: msg.KindEdit, Content: "now so"},
		"delete":             {ChatJID: channel, Kind: msg.KindDelete, TargetID: ts},
		"poll":               poll(`{"question":"Lunch?","options":["yes","*no*","1. later"],"multiple":true}`),
		"poll of 11 options": poll(`{"question":"Lunch?","options":["1","2","3","4","5","6","7","8","9","10","11"]}`),
		"closed poll":        {ChatJID: "slack:C1", ThreadID: "1700000000.000100", Kind: msg.KindPoll, TargetID: "1700000000.000200", Content: `{"question":"Lunch?","options":["yes","*no*"],"multiple":false,"closes_at":0,"result":{"counts":[2,1],"voters":3}}`},
		"closed, no id":      {ChatJID: "slack:C1", Kind: msg.KindPoll, TargetID: "none", Content: `{"question":"Lunch?","options":["yes","*no*"],"multiple":false,"closes_at":0,"result":{"counts":[2,1],"voters":3}}`},
		"invalid poll":       poll(`lunch`),
		"poll with mentions": poll(`{"question":"<!here> **Lunch**?","options":["<@U1>"]}`),
	}
	rows.AddForEachSource(outboundtest.Rows{
		"dm":                   text(dm, "", ts),
		"pane":                 text(dm, ts, ts),
		"channel":              text(channel, "", ""),
		"reply, no thread":     text(channel, "", ts),
		"thread":               text(channel, ts, "1764000001.000100"),
		"thread of an edit":    text(channel, ts+":e:1764000001.000100", ""),
		"another platform":     text("telegram:7", "", ""),
		"invalid chat address": text("slack:", "", ""),
		"invalid thread":       text(channel, "slash:1.2.ab", ""),
	})
	s := &Sender{Data: outboundtest.DataFolder(t, map[string]int64{"cat.jpg": 10, "big.zip": maxUpload + 1, "song.mp3": 10, "empty.txt": 0})}
	outboundtest.CompareParts(t, s, rows, describe)
}

func TestMark_RespectsLimit(t *testing.T) {
	p := &Sender{}
	for _, tt := range []struct {
		c    call
		want string
	}{
		{call{method: postMessage, text: "hello"}, "(possibly sent twice) hello"},
		{call{method: uploadFile, text: "look"}, "(possibly sent twice) look"},
		{call{method: uploadFile}, ""},
		{call{method: updateMessage, text: "hello"}, "hello"},
		{call{method: postMessage, text: strings.Repeat("é", maxText)}, strings.Repeat("é", maxText)},
	} {
		if got := p.Mark(tt.c).(call); got.text != tt.want || got.method != tt.c.method || utf8.RuneCountInString(got.text) > maxText {
			t.Errorf("%s of %.40q became %.80q", tt.c.method, tt.c.text, got.text)
		}
	}
}
