package outbound

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/adapter/outboundtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/bot"
	"arizuko/teled/internal/telegramapi"
)

// startSender starts a fake Telegram and a sender to it.
func startSender(t *testing.T) (*fixture, *Sender) {
	t.Helper()
	s := newFixture(fake.Options{})
	return s, s.sender(t)
}

func (s *fixture) sender(t *testing.T) *Sender {
	t.Helper()
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return newSender(telegramapi.NewClient(base, s.Token(), adapter.NewCallClient()), storetest.Open(t), t.TempDir())
}

func newSender(api *telegramapi.Client, st *store.Store, data string) *Sender {
	log := slog.New(slog.DiscardHandler)
	self := &bot.Bot{API: api, Store: st, Daemon: first.Daemon, Log: log, Now: time.Now}
	return &Sender{Identity: first, Now: time.Now, API: api, Bot: self, Store: st, Data: data, Log: log}
}

// sendAll sends the parts of a row, and returns the id of the first one and the remark or failure of the last.
func sendAll(t *testing.T, p *Sender, m *msg.Message) (first string, err error) {
	t.Helper()
	parts, err := p.Cut(m)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		var id string
		if id, err = adaptertest.Send(t.Context(), p, m, part); i == 0 {
			first = id
		}
	}
	return first, err
}

func wantRemark(t *testing.T, err error, text string) {
	t.Helper()
	var remark *adapter.Remark
	if !errors.As(err, &remark) || !strings.Contains(remark.Text, text) {
		t.Errorf("%v, want a remark with %q", err, text)
	}
}

func (s *fixture) last() fake.Call { sent := s.Sent(); return sent[len(sent)-1] }

// widePicture is a picture that is more than twenty times as wide as high.
func widePicture() []byte {
	var wide bytes.Buffer
	_ = png.Encode(&wide, image.NewPaletted(image.Rect(0, 0, 2100, 100), color.Palette{color.White})) // into memory
	return wide.Bytes()
}

// A part that Telegram refuses is sent in another form, and its record says so.
func TestSend_Refused_SendsOtherForm(t *testing.T) {
	const topicGone, notHere = "(for a topic that is closed or deleted)", "Telegram does not take the file %s here.\n\nthe report"
	refuse := func(method, text string) func(*fixture, *Sender) {
		return func(s *fixture, _ *Sender) {
			s.InjectFault(fake.Fault{Method: method, Status: 400, Description: "Bad Request: " + text})
		}
	}
	noRight := func(s *fixture, p *Sender) {
		refuse("sendPhoto", "not enough rights to send photos to the chat")(s, p)
		refuse("sendDocument", "not enough rights to send documents to the chat")(s, p)
	}
	closed, deleted := func(s *fixture, _ *Sender) { s.topic.CloseTopic(true) }, func(s *fixture, _ *Sender) { s.topic.DeleteTopic() }
	large := bytes.Repeat([]byte{0}, 50<<20+1)
	for name, tt := range map[string]struct {
		prepare          func(*fixture, *Sender)
		local            bool // the server is run with --local
		inTopic          bool
		content, replyTo string
		file, mime       string
		data             []byte
		remark           string
		method, text     string
	}{
		"topic closed": {prepare: closed, inTopic: true, content: "hello", replyTo: "3", remark: "TOPIC_CLOSED", method: "sendMessage", text: topicGone + " hello"},
		"topic deleted, a file": {prepare: deleted, inTopic: true, file: "a.txt", mime: "text/plain", data: []byte("text"),
			remark: "message thread not found", method: "sendDocument", text: topicGone},
		"topic deleted, a file with a caption": {prepare: deleted, inTopic: true, content: "a **report**", file: "a.txt", mime: "text/plain", data: []byte("text"),
			remark: "message thread not found", method: "sendDocument", text: topicGone + " a report"},
		"answered message unknown to Telegram": {content: "one", replyTo: "999", method: "sendMessage", text: "one"}, // it leaves it out
		"answered message unknown to a server": {prepare: refuse("sendMessage", "message to be replied not found"), content: "two", replyTo: "999",
			remark: "without the message that it answers", method: "sendMessage", text: "two"},

		"no picture":   {content: "a **cat**", file: "a.png", mime: "image/png", data: []byte("no picture"), remark: "sent as a document", method: "sendDocument", text: "a cat"},
		"wide picture": {file: "wide.png", mime: "image/png", data: widePicture(), remark: "PHOTO_INVALID_DIMENSIONS", method: "sendDocument"},
		"no voice messages": {prepare: func(s *fixture, _ *Sender) { s.ForbidVoice(s.alice, true) }, file: "a.ogg", mime: "audio/ogg", data: []byte("OggS"),
			remark: "takes no voice messages", method: "sendAudio"},
		// A group may allow no files, or some kinds only; the text is not lost.
		"no right to send files": {prepare: noRight, content: "the **report**", file: "a.png", mime: "image/png", data: []byte("png"),
			remark: "sent without the file", method: "sendMessage", text: fmt.Sprintf(notHere, "a.png")},
		"no right to send documents": {prepare: refuse("sendDocument", "CHAT_SEND_DOCS_FORBIDDEN"), content: "the **report**", file: "a.png", mime: "application/x",
			data: []byte("png"), remark: "sent without the file", method: "sendMessage", text: fmt.Sprintf(notHere, "a.png")},
		"empty file": {content: "the **report**", file: "empty.txt", mime: "text/plain", data: []byte{},
			remark: "sent without the file", method: "sendMessage", text: fmt.Sprintf(notHere, "empty.txt")},
		"large file, local server": {local: true, prepare: func(_ *fixture, p *Sender) { p.Local = true }, content: "the **report**", file: "a.txt", mime: "text/plain",
			data: large, method: "sendDocument", text: "the report"},
		"large file, server that is not local": {prepare: func(_ *fixture, p *Sender) { p.Local = true }, content: "the **report**", file: "a.txt", mime: "text/plain",
			data: large, remark: "sent without the file", method: "sendMessage",
			text: "The file a.txt is larger than the 50 MB that Telegram takes from bots.\n\nthe report"},
		"large file": {content: "the **report**", file: "a.txt", mime: "text/plain", data: large, method: "sendMessage", text: "the report"}, // below the notice
	} {
		s := newFixture(fake.Options{Local: tt.local})
		p := s.sender(t)
		if tt.prepare != nil {
			tt.prepare(s, p)
		}
		m := &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Content: tt.content, ReplyToID: tt.replyTo}
		if tt.inTopic {
			m.ChatJID, m.ThreadID = telegramapi.JID("telegram", s.topic.ChatID), strconv.Itoa(s.topic.ThreadID)
		}
		if tt.file != "" {
			m.Kind, m.Attachments = msg.KindFile, p.write(t, tt.file, tt.mime, tt.data)
		}
		id, err := sendAll(t, p, m)
		if tt.remark != "" {
			wantRemark(t, err, tt.remark)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		last := s.last()
		if id == "" || last.Method != tt.method || last.Text != tt.text || last.ThreadID != 0 || tt.remark != "" && last.ReplyTo != 0 {
			t.Errorf("%s: %q, %s %q in thread %d to %d", name, id, last.Method, last.Text, last.ThreadID, last.ReplyTo)
		}
		if sent := last.Files; tt.method != "sendMessage" && (len(sent) != 1 || !bytes.Equal(sent[0].Data, tt.data)) {
			t.Errorf("%s: %d files", name, len(sent))
		}
	}
}

func TestSend_EditOfFile_EditsItsCaption(t *testing.T) {
	s, p := startSender(t)
	if err := os.WriteFile(filepath.Join(p.Data, "a.txt"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	chat := telegramapi.JID("telegram", s.dm.ChatID)
	id, err := sendAll(t, p, &msg.Message{ChatJID: chat, Kind: msg.KindFile, Content: "first", Attachments: []msg.Attachment{{Name: "a.txt", Path: "a.txt", MIME: "text/plain"}}})
	if err != nil {
		t.Fatal(err)
	}
	edit := &msg.Message{ChatJID: chat, Kind: msg.KindEdit, Content: "a **second**", Target: &msg.Target{
		Kind: msg.KindFile, Files: 1, Parts: []msg.SentPart{{PlatformID: id, Sent: true}},
	}}
	for range 2 { // the second edit changes nothing
		if _, err := sendAll(t, p, edit); err != nil {
			t.Error(err)
		}
	}
	shown := s.dm.Messages()
	if m := shown[len(shown)-1]; m.Caption != "a second" || len(m.CaptionEntities) != 1 {
		t.Errorf("%+v", m)
	}
}

func TestSend_GeneralClosedToo_FailsWithWhatToDo(t *testing.T) {
	s, p := startSender(t)
	s.topic.CloseTopic(true)
	general := s.topic
	general.ThreadID = 0
	general.CloseTopic(true)
	for _, thread := range []string{strconv.Itoa(s.topic.ThreadID), ""} {
		_, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID("telegram", s.topic.ChatID), ThreadID: thread, Content: "hello"})
		var f *adapter.Failure
		if !errors.As(err, &f) || f.Class != msg.Permanent || !strings.Contains(err.Error(), "reopen one of them") || !strings.Contains(err.Error(), "gated lost resend") {
			t.Errorf("thread %q: %v", thread, err)
		}
	}
}

func TestSend_ReactionsTelegramRefuses_SendsSimilarOnes(t *testing.T) {
	s, p := startSender(t)
	id, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Content: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	react := func(emoji string) *msg.Message {
		return &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Kind: msg.KindReaction, TargetID: id, Content: emoji}
	}
	_, err = sendAll(t, p, react("✅"))
	wantRemark(t, err, "sent as 👍")
	for _, emoji := range []string{"❤️", "-✅"} {
		if _, err = sendAll(t, p, react(emoji)); err != nil {
			t.Errorf("%s: %v", emoji, err)
		}
	}
	if _, err := p.Cut(react("🍕")); err == nil || !strings.Contains(err.Error(), "does not accept") {
		t.Error(err)
	}
}

// write writes a file to the data folder, and returns its attachment.
func (s *Sender) write(t *testing.T, name, mime string, data []byte) []msg.Attachment {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Data, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return []msg.Attachment{{Name: name, Path: name, MIME: mime}}
}

func TestSend_LinkPreviews_AreOff(t *testing.T) {
	s, p := startSender(t)
	chat := telegramapi.JID("telegram", s.dm.ChatID)
	id, err := sendAll(t, p, &msg.Message{ChatJID: chat, Content: "see https://example.org"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sendAll(t, p, &msg.Message{ChatJID: chat, Kind: msg.KindEdit, TargetID: id, Content: "see https://example.com"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Calls() {
		if c.Method != "getMe" && c.Params["link_preview_options"] != `{"is_disabled":true}` {
			t.Errorf("%s with %v", c.Method, c.Params)
		}
	}
}

func TestSend_MethodUnknown_FailsWithItsName(t *testing.T) {
	s := newFixture(fake.Options{Lacks: []string{"setMessageReaction"}})
	p := s.sender(t)
	_, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Kind: msg.KindReaction, TargetID: "1", Content: "👍"})
	var f *adapter.Failure
	if !errors.As(err, &f) || f.Class != msg.Permanent || !strings.Contains(err.Error(), "setMessageReaction") {
		t.Errorf("%v", err)
	}
	if id, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Content: "next"}); id == "" || err != nil {
		t.Errorf("the next message: %q, %v", id, err)
	}
}

// A chat's limit holds up no other chat, a wait of the account holds up all.
func TestSend_FloodWait_OfTheAccountOrOfAChat(t *testing.T) {
	s, p := startSender(t)
	send := func(chat int64) *adapter.Failure {
		_, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID("telegram", chat), Content: "x"})
		f := &adapter.Failure{}
		errors.As(err, &f)
		return f
	}
	limited := fake.Fault{Method: "sendMessage", RetryAfter: 30}
	dm, topic := s.dm.ChatID, s.topic.ChatID
	for what, step := range map[string][]struct {
		chat    int64
		limit   bool
		account bool
	}{
		"one chat, again":            {{dm, true, false}, {dm, true, false}},
		"two chats, one taken first": {{dm, true, false}, {topic, false, false}, {topic, true, false}},
		"two chats":                  {{dm, true, false}, {topic, true, true}},
		"two busy chats":             {{dm, false, false}, {topic, false, false}, {dm, true, false}, {topic, true, false}},
	} {
		p.floods = adapter.Floods{}
		for i, call := range step {
			if call.limit {
				s.InjectFault(limited)
			}
			f := send(call.chat)
			if f.Account != call.account || call.limit != (f.Class == msg.Rate && f.After == 30*time.Second) {
				t.Errorf("%s, call %d: %+v", what, i, f)
			}
		}
	}
}

func TestMark_EachText_KeepsItsLimit(t *testing.T) {
	p := &Sender{Identity: first, Now: time.Now, Data: t.TempDir()}
	picture := p.write(t, "a.png", "image/png", []byte("x"))
	const chat = "telegram:7"
	textOf := func(p adapter.Part) outboundtest.Text {
		c := p.(call)
		text, _ := c.params[c.text].(string)
		return outboundtest.Text{Text: text, Length: render.UTF16Len(text), Limit: c.maxUnits()}
	}
	rows := outboundtest.Rows{
		"text":       {ChatJID: chat, Content: strings.Repeat("x", 9000)},
		"caption":    {ChatJID: chat, Kind: msg.KindFile, Content: strings.Repeat("😀", (maxCaption-markRoom)/2), Attachments: picture},
		"no caption": {ChatJID: chat, Kind: msg.KindFile, Attachments: picture},
		"question":   {ChatJID: chat, Kind: msg.KindPoll, Content: (&msg.Poll{Question: strings.Repeat("why ", 75), Options: []string{"a", "b"}}).JSON()},
	}
	outboundtest.CheckMarks(t, p, rows, textOf, func(adapter.Part) outboundtest.Text { return outboundtest.Text{} })
	for _, full := range []string{"text", "caption", "question"} { // no more is cut than the mark needs
		parts, err := p.Cut(rows[full])
		if err != nil {
			t.Fatal(err)
		}
		if got := textOf(p.Mark(parts[0])); got.Length < got.Limit-1 {
			t.Errorf("%s: %d units, want %d", full, got.Length, got.Limit)
		}
	}
}

func TestType_General_NamesItsTopic(t *testing.T) {
	s, p := startSender(t)
	typed := func(chat int64, thread string) string {
		t.Helper()
		if err := p.Type(t.Context(), store.Lane{ChatJID: telegramapi.JID("telegram", chat), ThreadID: thread}, true); err != nil {
			t.Fatal(err)
		}
		all := s.Calls()
		return all[len(all)-1].Params["message_thread_id"]
	}
	plain := s.Supergroup("Plain", s.alice)
	for range 2 {
		if got := typed(s.topic.ChatID, ""); got != "1" {
			t.Errorf("in General: thread %q", got)
		}
	}
	if got := typed(s.topic.ChatID, strconv.Itoa(s.topic.ThreadID)); got != strconv.Itoa(s.topic.ThreadID) {
		t.Errorf("in a topic: thread %q", got)
	}
	if a, b := typed(plain.ChatID, ""), typed(s.dm.ChatID, ""); a+b != "" {
		t.Errorf("without topics: threads %q, %q", a, b)
	}
	if n := s.asked(); n != 2 {
		t.Errorf("asked %d times whether two groups have topics", n)
	}
}

// asked is how often it was asked whether a group has topics.
func (s *fixture) asked() (n int) {
	for _, c := range s.Calls() {
		if c.Method == "getChat" {
			n++
		}
	}
	return n
}

func TestType_GroupCannotBeAsked_IsAskedAgainAfterAMinute(t *testing.T) {
	s, p := startSender(t)
	now := time.Now()
	p.Now = func() time.Time { return now }
	s.InjectFault(fake.Fault{Method: "getChat", Status: 500, Times: 1})
	lane := store.Lane{ChatJID: telegramapi.JID("telegram", s.topic.ChatID)}
	typed := func() string {
		t.Helper()
		if err := p.Type(t.Context(), lane, true); err != nil {
			t.Fatal(err)
		}
		all := s.Calls()
		return all[len(all)-1].Params["message_thread_id"]
	}
	for range 3 {
		if got := typed(); got != "" || s.asked() > 1 {
			t.Fatalf("thread %q, asked %d times", got, s.asked())
		}
	}
	now = now.Add(time.Minute)
	if got := typed(); got != "1" {
		t.Errorf("a minute later: thread %q", got)
	}
}

// Without entities the addresses of links are in the text, and no mention is made.
func TestOtherForm_EntitiesRefused_AddressesInText(t *testing.T) {
	refused := &telegramapi.Error{Method: "sendMessage", Code: http.StatusBadRequest, Description: "Bad Request: ENTITIES_TOO_LONG"}
	c := composer{}.Texts("see [the *plan*](https://a.bc/plan), `@joe` and [😀](https://a.bc/@joe)", nil)[0]
	other, remark := c.otherForm(refused)
	want := "see the plan (https://a.bc/plan), ＠joe and 😀 (https://a.bc/@joe)"
	if other == nil || other.params["text"] != want || other.params["entities"] != nil || remark == "" {
		t.Errorf("got %+v, %q", other, remark)
	}
	long := composer{}.Texts("[a](https://a.bc/"+strings.Repeat("b", 2000)+") "+strings.Repeat("word ", 600), nil)[0]
	if other, _ = long.otherForm(refused); render.UTF16Len(other.params["text"].(string)) > maxText {
		t.Errorf("too long")
	}
}
