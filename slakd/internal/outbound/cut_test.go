package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

// seen is a call as the golden file has it.
type seen struct {
	Method  string
	Channel string `json:",omitempty"`
	Thread  string `json:",omitempty"`
	Text    string `json:",omitempty"`
	TS      string `json:",omitempty"`
	Emoji   string `json:",omitempty"`
	File    string `json:",omitempty"`
	Tag     any    `json:",omitempty"`
}

func callsOf(t *testing.T, p *slack, m *msg.Message) (all []seen) {
	t.Helper()
	parts, err := p.Cut(m)
	if err != nil {
		return []seen{{Method: "error: " + err.Error()}}
	}
	for _, part := range parts {
		c := part.(call)
		s := seen{Method: c.method, Channel: c.channel, Thread: c.thread, Text: c.text, TS: c.ts, Emoji: c.emoji}
		if c.file != nil {
			s.File = c.file.name
		}
		if c.method == postMessage {
			s.Tag = c.tag.Metadata().EventPayload
		}
		all = append(all, s)
	}
	return all
}

// files makes a data folder with files of these sizes.
func files(t testing.TB, sizes map[string]int64) string {
	t.Helper()
	data := t.TempDir()
	for name, size := range sizes {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

// TestCut holds what is said, by whoever and wherever, against the calls of the API that it makes.
func TestCut(t *testing.T) {
	p := &slack{data: files(t, map[string]int64{"cat.jpg": 10, "big.zip": uploadMost + 1, "song.mp3": 10, "empty.txt": 0})}
	calls := map[string][]seen{}
	const channel, dm, ts = "slack:C1", "slack:D1", "1764000000.000100"
	for _, source := range []string{msg.SourceAgent, msg.SourceTool, msg.SourceNotice, msg.SourceCommand, "reminder", "broadcast"} {
		for place, m := range map[string]msg.Message{
			"dm":                    {ChatJID: dm, ReplyToID: ts},
			"pane":                  {ChatJID: dm, ThreadID: ts, ReplyToID: ts},
			"channel":               {ChatJID: channel},
			"reply, in no thread":   {ChatJID: channel, ReplyToID: ts},
			"thread":                {ChatJID: channel, ThreadID: ts, ReplyToID: "1764000001.000100"},
			"thread off an edit":    {ChatJID: channel, ThreadID: ts + ":e:1764000001.000100"},
			"an address of none":    {ChatJID: "telegram:7"},
			"an address of nothing": {ChatJID: "slack:"},
			"a thread of none":      {ChatJID: channel, ThreadID: "slash:1.2.ab"},
		} {
			m.ID, m.ReceivedAt = 7, 1764000000123
			m.Source, m.Content = source, "Hello **you** <!channel>"
			calls[place+", "+source] = callsOf(t, p, &m)
		}
	}
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
	for name, m := range map[string]*msg.Message{
		"long text":           {ChatJID: channel, ThreadID: ts, Content: strings.Repeat("0123456789 ", 800)},
		"nothing":             {ChatJID: channel},
		"file":                file("a *cat*", "cat.jpg"),
		"without words":       file("", "cat.jpg"),
		"long words":          file(strings.Repeat("word ", 1000), "cat.jpg"),
		"several":             file("look", "cat.jpg", "song.mp3"),
		"file too large":      file("look", "big.zip"),
		"empty file":          file("look", "empty.txt", "cat.jpg"),
		"file that is gone":   file("look", "gone.zip"),
		"reaction":            {ChatJID: channel, Kind: msg.KindReaction, TargetID: ts, Content: "👍"},
		"reaction by name":    {ChatJID: channel, Kind: msg.KindReaction, TargetID: ts, Content: ":party-parrot:"},
		"reaction back":       {ChatJID: channel, Kind: msg.KindReaction, TargetID: ts, Content: "-👍"},
		"reaction to none":    {ChatJID: channel, Kind: msg.KindReaction, TargetID: "m:join:7:1.2", Content: "👍"},
		"reaction of nobody":  {ChatJID: channel, Kind: msg.KindReaction, TargetID: ts, Content: "🦖"},
		"edit":                {ChatJID: channel, ThreadID: ts, Kind: msg.KindEdit, TargetID: ts, Content: "now `so`"},
		"long edit":           {ChatJID: channel, ThreadID: ts, Kind: msg.KindEdit, TargetID: ts, Content: strings.Repeat("0123456789 ", 500)},
		"edit of none":        {ChatJID: channel, Kind: msg.KindEdit, Content: "now so"},
		"delete":              {ChatJID: channel, Kind: msg.KindDelete, TargetID: ts},
		"poll":                poll(`{"question":"Lunch?","options":["yes","*no*","1. later"],"multiple":true}`),
		"poll of eleven":      poll(`{"question":"Lunch?","options":["1","2","3","4","5","6","7","8","9","10","11"]}`),
		"no poll":             poll(`lunch`),
		"poll about the team": poll(`{"question":"<!here> **Lunch**?","options":["<@U1>"]}`),
	} {
		calls[name] = callsOf(t, p, m)
	}
	got, err := json.MarshalIndent(calls, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "cut.golden.json"), string(got)+"\n")
}

func TestMark(t *testing.T) {
	p := &slack{}
	for _, tt := range []struct {
		c    call
		want string
	}{
		{call{method: postMessage, text: "hello"}, "(possibly sent twice) hello"},
		{call{method: uploadFile, text: "look"}, "(possibly sent twice) look"},
		{call{method: uploadFile}, ""},
		{call{method: updateMessage, text: "hello"}, "hello"},
		{call{method: postMessage, text: strings.Repeat("é", textMost)}, strings.Repeat("é", textMost)},
	} {
		if got := p.Mark(tt.c).(call); got.text != tt.want || got.method != tt.c.method || utf8.RuneCountInString(got.text) > textMost {
			t.Errorf("%s of %.40q became %.80q", tt.c.method, tt.c.text, got.text)
		}
	}
}
