package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

// seen is a call as the golden file has it.
type seen struct {
	Call string
	Body discordapi.Params `json:",omitempty"`
	File string            `json:",omitempty"`
}

func callsOf(t *testing.T, d *discord, m *msg.Message) []seen {
	t.Helper()
	parts, err := d.Cut(m)
	if err != nil {
		return []seen{{Call: "error: " + err.Error()}}
	}
	var all []seen
	for _, part := range parts {
		c := part.(call)
		s := seen{Call: c.method + " " + c.route(), Body: c.body}
		if c.file != nil {
			s.File = c.file.name
		}
		all = append(all, s)
	}
	return all
}

// TestCut holds what is said, by whoever and wherever, against the calls of the API that it makes.
func TestCut(t *testing.T) {
	data := t.TempDir()
	for name, size := range map[string]int64{"cat.jpg": 10, "big.zip": uploadMost + 1, "song.mp3": 10} {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	d := &discord{data: data}
	calls := map[string][]seen{}
	for _, source := range []string{msg.SourceAgent, msg.SourceTool, msg.SourceNotice, msg.SourceCommand, "reminder", "broadcast"} {
		for place, m := range map[string]msg.Message{
			"dm":                 {ChatJID: "discord:dm-30", ReplyToID: "12"},
			"channel":            {ChatJID: "discord:20", ReplyToID: "12"},
			"thread":             {ChatJID: "discord:20", ThreadID: "40", ReplyToID: "12"},
			"nobody's question":  {ChatJID: "discord:20", ThreadID: "40"},
			"reply to a join":    {ChatJID: "discord:20", ReplyToID: "m:join:7:1"},
			"reply to a command": {ChatJID: "discord:20", ReplyToID: "i:12"},
			"reply to an edit":   {ChatJID: "discord:dm-30", ReplyToID: "12:e:99"},
			"an address of none": {ChatJID: "discord:seven"},
			"of elsewhere":       {ChatJID: "telegram:7"},
			"a thread of none":   {ChatJID: "discord:20", ThreadID: "1.2"},
		} {
			m.ID, m.ReceivedAt, m.Source, m.Content = 5, 1795262400000, source, "Hello **you** @everyone <@7>"
			calls[place+", "+source] = callsOf(t, d, &m)
		}
	}
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
	long := strings.Repeat("0123456789 ", 400)
	for name, m := range map[string]*msg.Message{
		"long text":         {ChatJID: "discord:20", ReplyToID: "12", Content: long},
		"nothing":           {ChatJID: "discord:20"},
		"picture":           file("a *cat*", "cat.jpg"),
		"without caption":   file("", "cat.jpg"),
		"long caption":      file(long, "cat.jpg"),
		"several":           file("look", "cat.jpg", "song.mp3"),
		"file too large":    file("look", "big.zip"),
		"file that is gone": file("look", "gone.zip"),
		"reaction":          on(msg.KindReaction, "12", "👍"),
		"reaction back":     on(msg.KindReaction, "12", "-👍"),
		"reaction of ours":  on(msg.KindReaction, "12:e:99", "done:123"),
		"reaction to none":  on(msg.KindReaction, "m:join:7:1", "👍"),
		"no reaction":       on(msg.KindReaction, "12", ".."),
		"hostile reaction":  on(msg.KindReaction, "12", "x/../../../users/@me?a#b"),
		"edit":              on(msg.KindEdit, "12", "now `so`"),
		"long edit":         on(msg.KindEdit, "12", long),
		"empty edit":        on(msg.KindEdit, "12", ""),
		"edit of none":      on(msg.KindEdit, "", "now so"),
		"delete":            on(msg.KindDelete, "12", ""),
		"poll":              on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"multiple":true}`),
		"poll of an hour":   on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"closes_at":1795262400001}`),
		"poll of a day":     on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"closes_at":1795348800000}`),
		"poll of the past":  on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"closes_at":5}`),
		"poll of a year":    on(msg.KindPoll, "", `{"question":"Lunch?","options":["yes","no"],"closes_at":1826798400000}`),
		"no poll":           on(msg.KindPoll, "", `lunch`),
	} {
		calls[name] = callsOf(t, d, m)
	}
	got, err := json.MarshalIndent(calls, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "cut.golden.json"), string(got)+"\n")
}

func TestAMarkFits(t *testing.T) {
	d := &discord{}
	parts, err := d.Cut(&msg.Message{ChatJID: "discord:20", Content: "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	if marked := d.Mark(parts[0]).(call); marked.body["content"] != "(possibly sent twice) Hello" || parts[0].(call).body["content"] != "Hello" {
		t.Errorf("%v of %v", marked.body, parts[0])
	}
	full := call{method: "POST", body: discordapi.Params{"content": strings.Repeat("é", textMost)}}
	if n := utf8.RuneCountInString(d.Mark(full).(call).body["content"].(string)); n != textMost {
		t.Errorf("a full part has %d characters with its mark", n)
	}
	edit := call{method: "PATCH", body: discordapi.Params{"content": "Hello"}}
	if marked := d.Mark(edit).(call); marked.body["content"] != "Hello" {
		t.Errorf("an edit may be twice there: %v", marked.body)
	}
}

func TestNonce(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range []msg.Message{{ID: 1, ReceivedAt: 1795262400000}, {ID: 1, ReceivedAt: 1795262400001}, {ID: 2, ReceivedAt: 1795262400000}, {ID: 1<<63 - 1, ReceivedAt: 1<<53 - 1}} {
		for _, part := range []int{0, 1, 1000} {
			n := nonce(&m, part)
			if len(n) > 25 || seen[n] || n != nonce(&m, part) {
				t.Errorf("row %d, part %d: %q", m.ID, part, n)
			}
			seen[n] = true
		}
	}
}

func TestFailures(t *testing.T) {
	refused := func(status int) error {
		return fmt.Errorf("POST: %w", &discordapi.Error{Status: status, Message: "so", RetryAfter: 3 * time.Second})
	}
	for _, tt := range []struct {
		err   error
		class msg.ErrorClass
		after time.Duration
	}{
		{refused(429), msg.Rate, 3 * time.Second},
		{refused(401), msg.Auth, 3 * time.Second},
		{refused(404), msg.Permanent, 3 * time.Second},
		{refused(400), msg.Permanent, 3 * time.Second},
		{refused(403), msg.Permanent, 3 * time.Second},
		{refused(413), msg.Permanent, 3 * time.Second},
		{refused(500), msg.Ambiguous, 3 * time.Second},
		{refused(502), msg.Ambiguous, 3 * time.Second},
		{fmt.Errorf("%w: connection refused", discordapi.ErrUnsent), msg.Transient, 0},
		{errors.New("unexpected EOF"), msg.Ambiguous, 0},
		{&adapter.Failure{Class: msg.Permanent, Err: os.ErrNotExist}, msg.Permanent, 0},
	} {
		if f := failure(tt.err); f.Class != tt.class || f.After != tt.after {
			t.Errorf("%v is %s after %s, not %s after %s", tt.err, f.Class, f.After, tt.class, tt.after)
		}
	}
}
