package outbound

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

func (s *fixture) lane(p fake.Place) store.Lane {
	l := store.Lane{ChatJID: telegramapi.JID("telegram", p.ChatID)}
	if p.ThreadID != 0 {
		l.ThreadID = strconv.Itoa(p.ThreadID)
	}
	return l
}

// It is no draft, which would keep the user from writing: the fake has no method for these.
func TestShowPreview_PrivateChat_IsAMessage(t *testing.T) {
	s, p := startSender(t)
	in := s.lane(s.dm)
	id, err := p.ShowPreview(t.Context(), &adapter.Preview{Turn: 1 << 40, In: in, Line: adapter.PreviewStart})
	if id == "" || err != nil {
		t.Fatalf("%q, %v", id, err)
	}
	for _, v := range []struct{ text, line, want string }{
		{"", "Read *notes*.md…", "⏳ Read *notes*.md…"},
		{"One **two", "", "One **two"},
		{"One **two** @alice", "Search", "One two @\u200balice\n\n⏳ Search"},
		{strings.Repeat("word ", 2000), "Search", ""},
	} {
		_, err := p.ShowPreview(t.Context(), &adapter.Preview{Turn: 1 << 40, In: in, PlatformID: id, Text: v.text, Line: v.line})
		shown := s.dm.Messages()
		last := shown[len(shown)-1].Text
		if err != nil || v.want != "" && last != v.want {
			t.Errorf("%q: %v, %q", v.text, err, last)
		}
		if v.want == "" && (render.UTF16Len(last) > maxText || !strings.HasPrefix(last, "…\n") || !strings.HasSuffix(last, "⏳ Search")) {
			t.Errorf("%d units: %.20q", render.UTF16Len(last), last)
		}
	}
}

// begun makes a preview in the topic.
func (s *fixture) begun(t *testing.T, p *Sender) string {
	t.Helper()
	id, err := p.ShowPreview(t.Context(), &adapter.Preview{Turn: 1, In: s.lane(s.topic), Line: adapter.PreviewStart})
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	return id
}

func (s *fixture) message(id string) *fake.Message {
	for _, m := range s.topic.Messages() {
		if strconv.Itoa(m.ID) == id {
			return &m
		}
	}
	return nil
}

func TestShowPreview_Group_MessageIsChangedAndBecomesTheAnswer(t *testing.T) {
	s, p := startSender(t)
	id := s.begun(t, p)
	if m := s.message(id); m == nil || m.Text != "⏳ Working on it…" || len(m.Buttons()) != 0 || m.Thread != s.topic.ThreadID {
		t.Fatalf("%+v", m)
	}
	for range 2 { // the second time it is not modified
		if same, err := p.ShowPreview(t.Context(), &adapter.Preview{Turn: 1, In: s.lane(s.topic), PlatformID: id, Text: "```\ncode", Line: "Run"}); same != id || err != nil {
			t.Fatalf("%q, %v", same, err)
		}
	}
	if m := s.message(id); m.Text != "code\n\n⏳ Run" || len(m.Entities) != 1 || m.Entities[0].Length != 4 || !maps.Equal(m.Buttons(), map[string]string{"Stop": "stop:1"}) {
		t.Errorf("%q %+v %q", m.Text, m.Entities, m.Buttons())
	}
	m := &msg.Message{ChatJID: s.lane(s.topic).ChatJID, ThreadID: s.lane(s.topic).ThreadID, ReplyToID: "1", Content: "**done**"}
	parts, err := p.Cut(m)
	if err != nil {
		t.Fatal(err)
	}
	edit, ok := p.TakeOver(parts[0], id)
	if !ok || !edit.(adapter.Repeatable).Repeatable() {
		t.Fatalf("%+v", edit)
	}
	for range 2 { // as after a crash
		if _, err := p.Send(t.Context(), m, edit); err != nil {
			t.Fatal(err)
		}
	}
	if m := s.message(id); m.Text != "done" || len(m.Entities) != 1 || len(m.Buttons()) != 0 {
		t.Errorf("%q %+v %q", m.Text, m.Entities, m.Buttons())
	}
}

// A message that is gone, has no button or is of before a chat's move is no failure.
func TestRemoveUndo_Button_IsGone(t *testing.T) {
	s, p := startSender(t)
	m := &msg.Message{ChatJID: s.lane(s.topic).ChatJID, ThreadID: s.lane(s.topic).ThreadID, Content: "**done**", TurnID: 5, UndoUntil: 1}
	id, err := sendAll(t, p, m)
	if shown := s.message(id); err != nil || !maps.Equal(shown.Buttons(), map[string]string{"Undo": "undo:5"}) {
		t.Fatalf("%v, %+v", err, shown)
	}
	m.UndoUntil = 0
	parts, err := p.Cut(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{id, id, "4711", "old:4711"} {
		if err := p.RemoveUndo(t.Context(), m, parts[0], id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if shown := s.message(id); shown.Text != "done" || len(shown.Entities) != 1 || len(shown.Buttons()) != 0 || shown.EditDate != 0 {
		t.Errorf("%+v", shown)
	}
	s.InjectFault(fake.Fault{Method: "editMessageReplyMarkup", RetryAfter: 7})
	var f *adapter.Failure
	if err := p.RemoveUndo(t.Context(), m, parts[0], id); !errors.As(err, &f) || f.Class != msg.Rate || f.After != 7*time.Second {
		t.Errorf("%v", err)
	}
}

func TestTakeOver_NotPossible(t *testing.T) {
	_, p := startSender(t)
	for _, tt := range []struct {
		part call
		id   string
	}{{call{method: "sendPhoto"}, "5"}, {call{method: "sendMessage"}, "old:5"}, {call{method: "editMessageText"}, "5"}} {
		if _, ok := p.TakeOver(tt.part, tt.id); ok {
			t.Errorf("%s takes over %s", tt.part.method, tt.id)
		}
	}
}

func TestShowPreview_ButtonRefused_IsShownWithout(t *testing.T) {
	s, p := startSender(t)
	id := s.begun(t, p)
	s.InjectFault(fake.Fault{Method: "editMessageText", Status: 400, Description: "Bad Request: BUTTON_DATA_INVALID"})
	if _, err := p.ShowPreview(t.Context(), &adapter.Preview{Turn: 1, In: s.lane(s.topic), PlatformID: id, Text: "**half**"}); err != nil {
		t.Fatal(err)
	}
	if m := s.message(id); m.Text != "half" || len(m.Entities) != 1 || len(m.Buttons()) != 0 {
		t.Errorf("%q %+v %q", m.Text, m.Entities, m.Buttons())
	}
}
