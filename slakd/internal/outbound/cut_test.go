package outbound

import (
	"strings"
	"testing"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/outboundtest"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/slackapi"
)

var first = adapter.Identity{Platform: "slack", Daemon: "slakd"} // account

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

	Buttons []slackapi.Button `json:",omitempty"`
	Undo    int64             `json:",omitempty"`
}

func describe(p adapter.Part) any {
	c := p.(call)
	d := described{Method: c.method, Channel: c.channel, Thread: c.thread, Text: c.text, TS: c.ts, Emoji: c.emoji, Buttons: c.buttons, Undo: c.undo}
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
	question := &msg.Ask{ID: 5, Options: []string{"yes", "no"}}
	rows := outboundtest.Rows{
		"question":           {ChatJID: channel, ThreadID: ts, Content: "**Sure?** <!channel>", Ask: question},
		"long question":      {ChatJID: channel, Content: strings.Repeat("word ", 700), Ask: question},
		"answer":             {ChatJID: channel, ThreadID: ts, Content: "**Done**", TurnID: 9, UndoUntil: 1},
		"long answer":        {ChatJID: channel, Content: strings.Repeat("word ", 1000), TurnID: 9, UndoUntil: 1},
		"ended question":     {ChatJID: channel, Kind: msg.KindEdit, TargetID: ts, Content: "**yes**", Ask: question},
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
	s := &Sender{Identity: first, Data: outboundtest.DataFolder(t, map[string]int64{"cat.jpg": 10, "big.zip": maxUpload + 1, "song.mp3": 10, "empty.txt": 0})}
	outboundtest.CompareParts(t, s, rows, describe)
}

func TestMark_EachText_KeepsItsLimit(t *testing.T) {
	p := &Sender{Identity: first, Data: outboundtest.DataFolder(t, map[string]int64{"cat.jpg": 10})}
	cat := []msg.Attachment{{Name: "cat.jpg", Path: "cat.jpg"}}
	const chat = "slack:C1"
	textOf := func(p adapter.Part) outboundtest.Text {
		text := p.(call).text
		return outboundtest.Text{Text: text, Length: utf8.RuneCountInString(text), Limit: maxText}
	}
	inPlace := func(p adapter.Part) outboundtest.Text {
		c := p.(call)
		if c.file == nil {
			return outboundtest.Text{}
		}
		c.file = &adapter.File{Name: strings.Repeat("n", 255)}
		other, _ := otherForm(c, slackgo.SlackErrorResponse{Err: "file_uploads_except_images_disabled"})
		return textOf(other)
	}
	outboundtest.CheckMarks(t, p, outboundtest.Rows{
		"short":      {ChatJID: chat, Content: "hello"},
		"text":       {ChatJID: chat, Content: strings.Repeat("é", 3*maxText)},
		"comment":    {ChatJID: chat, Kind: msg.KindFile, Content: strings.Repeat("é", maxText-markRoom-noticeRoom), Attachments: cat},
		"long text":  {ChatJID: chat, Kind: msg.KindFile, Content: strings.Repeat("é", maxText-markRoom), Attachments: cat},
		"no comment": {ChatJID: chat, Kind: msg.KindFile, Attachments: cat},
	}, textOf, inPlace)
	for _, method := range []string{updateMessage, deleteMessage, addReaction, removeReaction} {
		if c := (call{method: method}); !c.Repeatable() {
			t.Errorf("%s must be repeatable, and never marked", method)
		}
	}
}
