package outbound

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/slackapi"
)

// sendAll sends the parts of a row in the private chat, and returns the id of the last one and its remark or failure.
func (s *fixture) sendAll(t *testing.T, base string, m *msg.Message) (id string, err error) {
	t.Helper()
	p := &Sender{Identity: first, Log: slog.New(slog.DiscardHandler), API: slackapi.NewClient(base+"/api/", s.BotToken(), "", adapter.NewCallClient()), Data: t.TempDir()}
	m.ChatJID = "slack:" + s.dm.ChannelID
	parts, err := p.Cut(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		id, err = adaptertest.Send(t.Context(), p, m, part)
	}
	return id, err
}

func (s *fixture) start(t *testing.T) (base string) {
	t.Helper()
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return base
}

func (s *fixture) shown(t *testing.T, ts string) fake.Message {
	t.Helper()
	for _, m := range s.dm.Messages() {
		if m.TS == ts {
			return m
		}
	}
	t.Fatalf("no message %s", ts)
	return fake.Message{}
}

// The longest question that agents may ask fits. Its text is in the blocks as it is, and mentions no user.
func TestSend_Question_HasButtonsUntilItEnds(t *testing.T) {
	s := newFixture(fake.Options{})
	base := s.start(t)
	const text = "**Sure?** <!channel> <@U1>"
	ask := &msg.Ask{ID: 5, Options: []string{"yes", strings.Repeat("&", 60)}}
	id, err := s.sendAll(t, base, &msg.Message{Content: strings.Repeat("long & ", 800) + text, Ask: ask})
	if err != nil {
		t.Fatal(err)
	}
	got := s.shown(t, id)
	var blocks []struct {
		Text struct {
			Text     string `json:"text"`
			Verbatim bool   `json:"verbatim"`
		} `json:"text"`
		Expand bool `json:"expand"`
	}
	if err := json.Unmarshal(got.Blocks, &blocks); err != nil || len(blocks) != 2 {
		t.Fatalf("the blocks are %s, %v", got.Blocks, err)
	}
	if section := blocks[0]; section.Text.Text != got.Text || !section.Text.Verbatim || !section.Expand || !strings.Contains(got.Text, "&lt;!channel&gt;") {
		t.Errorf("the section is %+v, the text %q", section, got.Text)
	}
	if buttons := got.Buttons(); buttons["yes"] != "ask:5:1" || buttons[ask.Options[1]] != "ask:5:2" {
		t.Errorf("the buttons are %q", buttons)
	}
	for _, call := range s.Sent() {
		if len(call.Pings) > 0 {
			t.Errorf("it mentions %q", call.Pings)
		}
	}
	if _, err := s.sendAll(t, base, &msg.Message{Kind: msg.KindEdit, TargetID: id, Content: "**yes**", Ask: ask}); err != nil {
		t.Fatal(err)
	}
	if got := s.shown(t, id); got.Text != "*yes*" || got.Blocks != nil {
		t.Errorf("it is %q with the blocks %s", got.Text, got.Blocks)
	}
}

// The text is as without a button. An edit takes that away.
func TestRemoveUndo_Button_IsGone(t *testing.T) {
	s := newFixture(fake.Options{})
	p := &Sender{Identity: first, Log: slog.New(slog.DiscardHandler), API: slackapi.NewClient(s.start(t)+"/api/", s.BotToken(), "", adapter.NewCallClient())}
	send := func(m *msg.Message) (part adapter.Part, id string) {
		t.Helper()
		m.ChatJID = "slack:" + s.dm.ChannelID
		parts, err := p.Cut(m)
		if err != nil {
			t.Fatal(err)
		}
		if id, err = p.Send(t.Context(), m, parts[0]); err != nil {
			t.Fatal(err)
		}
		return parts[0], id
	}
	part, id := send(&msg.Message{Content: "**done** & <@U1>", TurnID: 5, UndoUntil: 1})
	before := s.shown(t, id)
	if buttons := before.Buttons(); len(buttons) != 1 || buttons["Undo"] != "undo:5" || before.Text != "*done* &amp; &lt;@U1&gt;" || before.Blocks != nil {
		t.Errorf("%q with %s", before.Text, before.Blocks)
	}
	for _, id := range []string{id, id, "1764000000.000100", "old:" + id} {
		if err := p.RemoveUndo(t.Context(), nil, part, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if got := s.shown(t, id); got.Text != before.Text || len(got.Buttons()) != 0 || got.Attachments != nil {
		t.Errorf("%q with %s", got.Text, got.Attachments)
	}
	_, id = send(&msg.Message{Content: "another", TurnID: 6, UndoUntil: 1})
	send(&msg.Message{Kind: msg.KindEdit, TargetID: id, Content: "better"})
	if got := s.shown(t, id); got.Text != "better" || len(got.Buttons()) != 0 {
		t.Errorf("%q with %s", got.Text, got.Attachments)
	}
}
