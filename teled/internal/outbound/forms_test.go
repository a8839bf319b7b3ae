package outbound

import (
	"bytes"
	"errors"
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

func TestSend_NoPicture_SendsDocument(t *testing.T) {
	s, p := startSender(t)
	if err := os.WriteFile(filepath.Join(p.Data, "a.png"), []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &msg.Message{
		ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Kind: msg.KindFile, Content: "a **cat**", Attachments: []msg.Attachment{{Name: "a.png", Path: "a.png", MIME: "image/png"}},
	}
	id, err := sendAll(t, p, m)
	wantRemark(t, err, "sent as a document")
	if last := s.last(); id == "" || last.Method != "sendDocument" || last.Text != "a cat" {
		t.Errorf("%q, %+v", id, last)
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

func TestSend_TopicClosed_SendsToTheChat(t *testing.T) {
	s, p := startSender(t)
	s.topic.CloseTopic(true)
	_, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID("telegram", s.topic.ChatID), ThreadID: strconv.Itoa(s.topic.ThreadID), ReplyToID: "3", Content: "hello"})
	wantRemark(t, err, "TOPIC_CLOSED")
	if last := s.last(); last.ThreadID != 0 || last.Text != "(for a topic that is closed or deleted) hello" {
		t.Errorf("%+v", last)
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

func TestSend_TopicDeleted_FileGoesToTheChatWithItsCaption(t *testing.T) {
	s, p := startSender(t)
	s.topic.DeleteTopic()
	chat := telegramapi.JID("telegram", s.topic.ChatID)
	for caption, want := range map[string]string{
		"":             "(for a topic that is closed or deleted)",
		"a **report**": "(for a topic that is closed or deleted) a report",
	} {
		m := &msg.Message{ChatJID: chat, ThreadID: strconv.Itoa(s.topic.ThreadID), Kind: msg.KindFile, Content: caption, Attachments: p.write(t, "a.txt", "text/plain", []byte("text"))}
		_, err := sendAll(t, p, m)
		wantRemark(t, err, "message thread not found")
		if last := s.last(); last.Text != want || last.Method != "sendDocument" {
			t.Errorf("%+v, want the caption %q", last, want)
		}
	}
}

func TestSend_PictureTelegramRefuses_SendsDocument(t *testing.T) {
	s, p := startSender(t)
	var wide bytes.Buffer
	_ = png.Encode(&wide, image.NewPaletted(image.Rect(0, 0, 2100, 100), color.Palette{color.White}))
	m := &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Kind: msg.KindFile, Attachments: p.write(t, "wide.png", "image/png", wide.Bytes())}
	_, err := sendAll(t, p, m)
	wantRemark(t, err, "PHOTO_INVALID_DIMENSIONS")
	if last := s.last(); last.Method != "sendDocument" || len(last.Files) != 1 || len(last.Files[0].Data) != wide.Len() {
		t.Errorf("%s with %d files", last.Method, len(last.Files))
	}
}

func TestSend_VoiceForbidden_SendsAudio(t *testing.T) {
	s, p := startSender(t)
	s.ForbidVoice(s.alice, true)
	m := &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Kind: msg.KindFile, Attachments: p.write(t, "a.ogg", "audio/ogg", []byte("OggS"))}
	_, err := sendAll(t, p, m)
	wantRemark(t, err, "takes no voice messages")
	if last := s.last(); last.Method != "sendAudio" {
		t.Errorf("%+v", last)
	}
}

func TestSend_LargeFile_DependsOnTheServer(t *testing.T) {
	for name, tt := range map[string]struct {
		server, local bool
		method, text  string
	}{
		"of Telegram":       {false, false, "sendMessage", "the report"},
		"local":             {true, true, "sendDocument", "the report"},
		"called local only": {false, true, "sendMessage", "The file a.txt is larger than the 50 MB that Telegram takes from bots.\n\nthe report"},
	} {
		s := newFixture(fake.Options{Local: tt.server})
		p := s.sender(t)
		p.Local = tt.local
		files := p.write(t, "a.txt", "text/plain", nil)
		if err := os.Truncate(filepath.Join(p.Data, "a.txt"), 50<<20+1); err != nil {
			t.Fatal(err)
		}
		_, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Kind: msg.KindFile, Content: "the **report**", Attachments: files})
		if last := s.last(); last.Method != tt.method || last.Text != tt.text {
			t.Errorf("%s: %s %q, %v", name, last.Method, last.Text, err)
		}
		if tt.server != tt.local {
			wantRemark(t, err, "sent without the file")
		}
	}
}

// A group may allow no files, or some kinds only; the text is not lost.
func TestSend_NoRightToSendFiles_SendsText(t *testing.T) {
	s, p := startSender(t)
	if err := os.WriteFile(filepath.Join(p.Data, "a.png"), []byte("png"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Data, "empty.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file, mime string
		refused    map[string]string // by method
	}{
		{"a.png", "image/png", map[string]string{
			"sendPhoto": "not enough rights to send photos to the chat", "sendDocument": "not enough rights to send documents to the chat",
		}},
		{"a.png", "application/x", map[string]string{"sendDocument": "CHAT_SEND_DOCS_FORBIDDEN"}},
		{"empty.txt", "text/plain", nil},
	} {
		for method, text := range tt.refused {
			s.InjectFault(fake.Fault{Method: method, Status: 400, Description: "Bad Request: " + text})
		}
		files := []msg.Attachment{{Name: tt.file, Path: tt.file, MIME: tt.mime}}
		_, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Kind: msg.KindFile, Content: "the **report**", Attachments: files})
		wantRemark(t, err, "sent without the file")
		want := "Telegram does not take the file " + tt.file + " here.\n\nthe report"
		if last := s.last(); last.Method != "sendMessage" || last.Text != want {
			t.Errorf("%s: %s %q, want %q", tt.file, last.Method, last.Text, want)
		}
	}
}

func TestSend_AnsweredMessageGone_SendsWithoutReply(t *testing.T) {
	s, p := startSender(t)
	chat := telegramapi.JID("telegram", s.dm.ChatID)
	if _, err := sendAll(t, p, &msg.Message{ChatJID: chat, ReplyToID: "999", Content: "one"}); err != nil {
		t.Error(err) // Telegram itself leaves it out
	}
	s.InjectFault(fake.Fault{Method: "sendMessage", Status: 400, Description: "Bad Request: message to be replied not found"})
	_, err := sendAll(t, p, &msg.Message{ChatJID: chat, ReplyToID: "999", Content: "two"})
	wantRemark(t, err, "without the message that it answers")
	if last := s.last(); last.Text != "two" || last.ReplyTo != 0 {
		t.Errorf("%+v", last)
	}
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
	question := strings.Repeat("why ", 75)
	for what, tt := range map[string]struct {
		m    *msg.Message
		want int // units of the longest text
	}{
		"text":       {&msg.Message{ChatJID: "telegram:7", Content: strings.Repeat("x", 9000)}, maxText},
		"caption":    {&msg.Message{ChatJID: "telegram:7", Kind: msg.KindFile, Content: strings.Repeat("😀", (maxCaption-markRoom)/2), Attachments: picture}, maxCaption},
		"no caption": {&msg.Message{ChatJID: "telegram:7", Kind: msg.KindFile, Attachments: picture}, len("(possibly sent twice)")},
		"question":   {&msg.Message{ChatJID: "telegram:7", Kind: msg.KindPoll, Content: (&msg.Poll{Question: question, Options: []string{"a", "b"}}).JSON()}, maxPoll},
	} {
		parts, err := p.Cut(tt.m)
		if err != nil {
			t.Fatal(err)
		}
		longest := 0
		for _, part := range parts {
			marked := p.Mark(part).(call)
			text := marked.params[marked.text].(string)
			if !strings.HasPrefix(text, "(possibly sent twice)") {
				t.Errorf("%s: %q has no mark", what, text)
			}
			longest = max(longest, render.UTF16Len(text))
		}
		if longest > tt.want || longest < tt.want-1 {
			t.Errorf("%s: %d units, want %d", what, longest, tt.want)
		}
	}
}

func TestType_General_NamesItsTopic(t *testing.T) {
	s, p := startSender(t)
	typed := func(chat int64, thread string) string {
		t.Helper()
		if err := p.Type(t.Context(), store.Lane{ChatJID: telegramapi.JID("telegram", chat), ThreadID: thread}); err != nil {
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
		if err := p.Type(t.Context(), lane); err != nil {
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
	c := composer{}.Texts("see [the *plan*](https://a.bc/plan), `@joe` and [😀](https://a.bc/@joe)")[0]
	other, remark := c.otherForm(refused)
	want := "see the plan (https://a.bc/plan), ＠joe and 😀 (https://a.bc/@joe)"
	if other == nil || other.params["text"] != want || other.params["entities"] != nil || remark == "" {
		t.Errorf("got %+v, %q", other, remark)
	}
	long := composer{}.Texts("[a](https://a.bc/" + strings.Repeat("b", 2000) + ") " + strings.Repeat("word ", 600))[0]
	if other, _ = long.otherForm(refused); render.UTF16Len(other.params["text"].(string)) > maxText {
		t.Errorf("too long")
	}
}
