package outbound

import (
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/outboundtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

var first = adapter.Identity{Platform: "telegram", Daemon: "teled"} // account

// described is a call as the golden file contains it.
type described struct {
	Method string
	Params telegramapi.Params
	File   string `json:",omitempty"`
}

func describe(p adapter.Part) any {
	c := p.(call)
	d := described{Method: c.method, Params: c.params}
	if c.file != nil {
		d.File = c.field + " " + c.file.Name
	}
	return d
}

func question(options ...string) *msg.Ask { return &msg.Ask{ID: 5, Options: options} }

// TestCut_RowsOfEachKind_MakeTheseCalls compares rows of every source, kind and destination with the
// calls of the golden file.
func TestCut_RowsOfEachKind_MakeTheseCalls(t *testing.T) {
	file := func(content string, names ...string) *msg.Message {
		m := &msg.Message{ChatJID: "telegram:7", Kind: msg.KindFile, ReplyToID: "12", Content: content}
		for _, name := range names {
			kind, path, _ := strings.Cut(name, " ")
			m.Attachments = append(m.Attachments, msg.Attachment{Name: path, Path: path, MIME: kind})
		}
		return m
	}
	rows := outboundtest.Rows{
		"long text":         {ChatJID: "telegram:7", ReplyToID: "12", Content: strings.Repeat("0123456789 ", 800)},
		"nothing":           {ChatJID: "telegram:7"},
		"picture":           file("a *cat*", "image/jpeg cat.jpg"),
		"without caption":   file("", "image/jpeg cat.jpg"),
		"long caption":      file(strings.Repeat("word ", 300), "image/jpeg cat.jpg"),
		"several":           file("look", "image/jpeg cat.jpg", "audio/mpeg song.mp3", "audio/ogg note.ogg", "video/mp4 clip.mp4", "image/svg+xml a.svg"),
		"picture too large": file("", "image/png huge.png"),
		"file too large":    file("look", "application/zip big.zip"),
		"missing file":      file("look", "application/zip gone.zip"),
		"reaction":          {ChatJID: "telegram:7", Kind: msg.KindReaction, TargetID: "12", Content: "👍"},
		"reaction removed":  {ChatJID: "telegram:7", Kind: msg.KindReaction, TargetID: "12", Content: "-👍"},
		"reaction, no id":   {ChatJID: "telegram:7", Kind: msg.KindReaction, TargetID: "m:join:7:1", Content: "👍"},
		"edit":              {ChatJID: "telegram:-1005", ThreadID: "33", Kind: msg.KindEdit, TargetID: "12", Content: "now `so`"},
		"edit, no id":       {ChatJID: "telegram:7", Kind: msg.KindEdit, Content: "now so"},
		"delete":            {ChatJID: "telegram:7", Kind: msg.KindDelete, TargetID: "12"},
		"poll":              {ChatJID: "telegram:7", Kind: msg.KindPoll, Content: `{"question":"Lunch?","options":["yes","no"],"multiple":true}`},
		"closed poll":       {ChatJID: "telegram:-1005", ThreadID: "33", Kind: msg.KindPoll, TargetID: "12", Content: `{"question":"Lunch?","options":["yes","*no*"],"multiple":false,"closes_at":0,"result":{"counts":[2,1],"voters":3}}`},
		"closed, no id":     {ChatJID: "telegram:7", Kind: msg.KindPoll, TargetID: "old:12", Content: `{"question":"Lunch?","options":["yes","*no*"],"multiple":false,"closes_at":0,"result":{"counts":[2,1],"voters":3}}`},
		"question":          {ChatJID: "telegram:7", ReplyToID: "12", Content: "**Sure?**\n\n1. yes", Ask: question("yes", "no", "never", "later")},
		"answer":            {ChatJID: "telegram:7", ReplyToID: "12", Content: "**Done**", TurnID: 9, UndoUntil: 1},
		"long answer":       {ChatJID: "telegram:7", Content: strings.Repeat("word ", 900), TurnID: 9, UndoUntil: 1},
		"long question":     {ChatJID: "telegram:7", Content: strings.Repeat("word ", 900), Ask: question("yes", "yes, and do not ask again", "no")},
		"ended question":    {ChatJID: "telegram:7", Kind: msg.KindEdit, TargetID: "12", Content: "**yes** — answered by Ada", Ask: question("yes", "no")},
		"invalid poll":      {ChatJID: "telegram:7", Kind: msg.KindPoll, Content: `lunch`},
	}
	const text = "Hello **you**"
	rows.AddForEachSource(outboundtest.Rows{
		"dm":                   {ChatJID: "telegram:7", ReplyToID: "12", Content: text},
		"group":                {ChatJID: "telegram:-5", ReplyToID: "12", Content: text},
		"forum topic":          {ChatJID: "telegram:-1005", ThreadID: "33", ReplyToID: "12", Content: text},
		"topic, no reply":      {ChatJID: "telegram:-1005", ThreadID: "33", Content: text},
		"reply to a join":      {ChatJID: "telegram:-5", ReplyToID: "m:join:7:1", Content: text},
		"reply before a move":  {ChatJID: "telegram:-1005", ReplyToID: "old:12", Content: text},
		"reply to an edit":     {ChatJID: "telegram:7", ReplyToID: "12:e:99-ab", Content: text},
		"invalid chat address": {ChatJID: "telegram:seven", Content: text},
		"invalid thread":       {ChatJID: "telegram:-1005", ThreadID: "1.2", Content: text},
	})
	s := &Sender{Identity: first, Now: time.Now, Data: outboundtest.DataFolder(t, map[string]int64{
		"cat.jpg": 10, "big.zip": msg.MaxUploadTelegram(false) + 1, "song.mp3": 10, "note.ogg": 10, "clip.mp4": 10, "a.svg": 10, "huge.png": maxPhoto + 1,
	})}
	outboundtest.CompareParts(t, s, rows, describe)
}

func TestMark_MovesEntities(t *testing.T) {
	p := &Sender{Identity: first, Now: time.Now}
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
		t.Error("Mark changed the original part")
	}
	full := p.Mark(call{method: "sendMessage", text: "text", params: telegramapi.Params{"text": strings.Repeat("x", maxText)}}).(call)
	if render.UTF16Len(full.params["text"].(string)) > maxText {
		t.Error("a marked part is longer than the limit")
	}
}

// The remark that the text was sent plain is kept.
func TestSend_EntitiesRefused_SendsPlainText(t *testing.T) {
	s, p := startSender(t)
	m := &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Content: "Hello **you** `@joe` joe@a.bc `tg://user?id=1`"}
	s.InjectFault(fake.Fault{Method: "sendMessage", Status: 400, Description: "Bad Request: can't parse entities: so"})
	_, err := sendAll(t, p, m)
	wantRemark(t, err, "parse entities")
	if last := s.last(); last.Text != "Hello you ＠joe joe@a.bc tg：//user?id=1" || len(last.Entities) != 0 {
		t.Errorf("sent %q with %v", last.Text, last.Entities)
	}
	if id, err := sendAll(t, p, m); id == "" || err != nil {
		t.Errorf("the next send: %q, %v", id, err)
	}
}
