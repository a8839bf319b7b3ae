package outbound

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

// startSender starts a fake Telegram and a sender to it.
func startSender(t *testing.T) (*fixture, *Sender) {
	t.Helper()
	s := newFixture()
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, &Sender{API: telegramapi.NewClient(base, s.Token(), adapter.NewCallClient()), Data: t.TempDir()}
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
		if id, err = p.Send(t.Context(), m, part); i == 0 {
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
		ChatJID: telegramapi.JID(s.dm.ChatID), Kind: msg.KindFile, Content: "a **cat**", Attachments: []msg.Attachment{{Name: "a.png", Path: "a.png", MIME: "image/png"}},
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
	chat := telegramapi.JID(s.dm.ChatID)
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
	s.InjectFault(fake.Fault{Method: "sendMessage", Status: 400, Description: "Bad Request: TOPIC_CLOSED"})
	_, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID(s.topic.ChatID), ThreadID: "2", ReplyToID: "3", Content: "hello"})
	wantRemark(t, err, "TOPIC_CLOSED")
	if last := s.last(); last.ThreadID != 0 || last.Text != "hello" {
		t.Errorf("%+v", last)
	}
}

func TestSend_ReactionsTelegramRefuses_SendsSimilarOnes(t *testing.T) {
	s, p := startSender(t)
	id, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID(s.dm.ChatID), Content: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	react := func(emoji string) *msg.Message {
		return &msg.Message{ChatJID: telegramapi.JID(s.dm.ChatID), Kind: msg.KindReaction, TargetID: id, Content: emoji}
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
