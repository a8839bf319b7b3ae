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

	"arizuko/pkg/adapter"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

// seen is a call as the golden file has it.
type seen struct {
	Method string
	Params telegramapi.Params
	File   string `json:",omitempty"`
}

func callsOf(t *testing.T, p *telegram, m *msg.Message) []seen {
	t.Helper()
	parts, err := p.Cut(m)
	if err != nil {
		return []seen{{Method: "error: " + err.Error()}}
	}
	var all []seen
	for _, part := range parts {
		c := part.(call)
		s := seen{Method: c.method, Params: c.params}
		if c.file != nil {
			s.File = c.file.field + " " + c.file.name
		}
		all = append(all, s)
	}
	return all
}

// TestCut holds what is said, by whoever and wherever, against the calls of the API that it makes.
func TestCut(t *testing.T) {
	data := t.TempDir()
	for name, size := range map[string]int64{"cat.jpg": 10, "big.zip": uploadMost + 1, "song.mp3": 10, "note.ogg": 10, "clip.mp4": 10, "a.svg": 10, "huge.png": photoMost + 1} {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	p := &telegram{data: data}
	calls := map[string][]seen{}
	for _, source := range []string{msg.SourceAgent, msg.SourceTool, msg.SourceNotice, msg.SourceCommand, "reminder", "broadcast"} {
		for place, m := range map[string]msg.Message{
			"dm":                 {ChatJID: "telegram:7", ReplyToID: "12"},
			"group":              {ChatJID: "telegram:-5", ReplyToID: "12"},
			"topic of a forum":   {ChatJID: "telegram:-1005", ThreadID: "33", ReplyToID: "12"},
			"nobody's question":  {ChatJID: "telegram:-1005", ThreadID: "33"},
			"reply to a join":    {ChatJID: "telegram:-5", ReplyToID: "m:join:7:1"},
			"reply from before":  {ChatJID: "telegram:-1005", ReplyToID: "old:12"},
			"reply to an edit":   {ChatJID: "telegram:7", ReplyToID: "12:e:99-ab"},
			"an address of none": {ChatJID: "telegram:seven"},
			"a thread of none":   {ChatJID: "telegram:-1005", ThreadID: "1.2"},
		} {
			m.Source, m.Content = source, "Hello **you**"
			calls[place+", "+source] = callsOf(t, p, &m)
		}
	}
	file := func(content string, names ...string) *msg.Message {
		m := &msg.Message{ChatJID: "telegram:7", Kind: msg.KindFile, ReplyToID: "12", Content: content}
		for _, name := range names {
			kind, path, _ := strings.Cut(name, " ")
			m.Attachments = append(m.Attachments, msg.Attachment{Name: path, Path: path, MIME: kind})
		}
		return m
	}
	long := strings.Repeat("word ", 300)
	for name, m := range map[string]*msg.Message{
		"long text":         {ChatJID: "telegram:7", ReplyToID: "12", Content: strings.Repeat("0123456789 ", 800)},
		"nothing":           {ChatJID: "telegram:7"},
		"picture":           file("a *cat*", "image/jpeg cat.jpg"),
		"without caption":   file("", "image/jpeg cat.jpg"),
		"long caption":      file(long, "image/jpeg cat.jpg"),
		"several":           file("look", "image/jpeg cat.jpg", "audio/mpeg song.mp3", "audio/ogg note.ogg", "video/mp4 clip.mp4", "image/svg+xml a.svg"),
		"picture too large": file("", "image/png huge.png"),
		"file too large":    file("look", "application/zip big.zip"),
		"file that is gone": file("look", "application/zip gone.zip"),
		"reaction":          {ChatJID: "telegram:7", Kind: msg.KindReaction, TargetID: "12", Content: "👍"},
		"reaction back":     {ChatJID: "telegram:7", Kind: msg.KindReaction, TargetID: "12", Content: "-👍"},
		"reaction to none":  {ChatJID: "telegram:7", Kind: msg.KindReaction, TargetID: "m:join:7:1", Content: "👍"},
		"edit":              {ChatJID: "telegram:-1005", ThreadID: "33", Kind: msg.KindEdit, TargetID: "12", Content: "now `so`"},
		"edit of none":      {ChatJID: "telegram:7", Kind: msg.KindEdit, Content: "now so"},
		"delete":            {ChatJID: "telegram:7", Kind: msg.KindDelete, TargetID: "12"},
		"poll":              {ChatJID: "telegram:7", Kind: msg.KindPoll, Content: `{"question":"Lunch?","options":["yes","no"],"multiple":true}`},
		"no poll":           {ChatJID: "telegram:7", Kind: msg.KindPoll, Content: `lunch`},
	} {
		calls[name] = callsOf(t, p, m)
	}
	got, err := json.MarshalIndent(calls, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "cut.golden.json"), string(got)+"\n")
}

func TestAMarkMovesTheFormatting(t *testing.T) {
	p := &telegram{}
	parts, err := p.Cut(&msg.Message{ChatJID: "telegram:7", Content: "Hello **you**"})
	if err != nil {
		t.Fatal(err)
	}
	marked := p.Mark(parts[0]).(call)
	text := marked.params["text"].(string)
	e := marked.params["entities"].([]render.Entity)[0]
	if text != "(possibly sent twice) Hello you" || text[e.Offset:e.Offset+e.Length] != "you" {
		t.Errorf("%q with %+v", text, e)
	}
	if before := parts[0].(call); before.params["text"] != "Hello you" || before.params["entities"].([]render.Entity)[0].Offset != 6 {
		t.Error("the part itself has changed")
	}
	full := p.Mark(call{method: "sendMessage", plain: "text", params: telegramapi.Params{"text": strings.Repeat("x", textMost)}}).(call)
	if utf16Len(full.params["text"].(string)) > textMost {
		t.Error("a full part is too long with its mark")
	}
}

// What Telegram finds no way to format is sent plain, and that is kept.
func TestPlainIfNeedBe(t *testing.T) {
	s := newScene()
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := &telegram{api: telegramapi.NewClient(base, s.Token())}
	m := &msg.Message{ChatJID: telegramapi.JID(s.dm.ChatID), Content: "Hello **you**"}
	parts, err := p.Cut(m)
	if err != nil {
		t.Fatal(err)
	}
	s.InjectFault(fake.Fault{Method: "sendMessage", Status: 400, Description: "Bad Request: can't parse entities: so"})
	id, err := p.Send(t.Context(), m, parts[0])
	var remark *adapter.Remark
	if id == "" || !errors.As(err, &remark) || !strings.Contains(remark.Text, "parse entities") {
		t.Errorf("%q, %v", id, err)
	}
	sent := s.Sent()
	if last := sent[len(sent)-1]; last.Text != "Hello you" || len(last.Entities) != 0 {
		t.Errorf("it says %q with %v", last.Text, last.Entities)
	}
	if id, err = p.Send(t.Context(), m, parts[0]); id == "" || err != nil {
		t.Errorf("then %q, %v", id, err)
	}
}

func TestFailures(t *testing.T) {
	refused := func(code int) error {
		return fmt.Errorf("sendMessage: %w", &telegramapi.Error{Code: code, Description: "so", RetryAfter: 3 * time.Second})
	}
	for _, tt := range []struct {
		err   error
		class msg.ErrorClass
		after time.Duration
	}{
		{refused(429), msg.Rate, 3 * time.Second},
		{refused(401), msg.Auth, 3 * time.Second},
		{refused(404), msg.Auth, 3 * time.Second},
		{refused(400), msg.Permanent, 3 * time.Second},
		{refused(403), msg.Permanent, 3 * time.Second},
		{refused(413), msg.Permanent, 3 * time.Second},
		{refused(500), msg.Ambiguous, 3 * time.Second},
		{fmt.Errorf("%w: connection refused", telegramapi.ErrUnsent), msg.Transient, 0},
		{errors.New("the server answers 502"), msg.Ambiguous, 0},
		{&adapter.Failure{Class: msg.Permanent, Err: os.ErrNotExist}, msg.Permanent, 0},
	} {
		if f := failure(tt.err); f.Class != tt.class || f.After != tt.after {
			t.Errorf("%v is %s after %s, not %s after %s", tt.err, f.Class, f.After, tt.class, tt.after)
		}
	}
}
