package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

// laterBot makes a sender's bot the second one of its database, and returns the mark of its ids.
func (s *fixture) laterBot(t *testing.T, p *Sender) (mark string) {
	t.Helper()
	if err := p.Store.Write(t.Context(), func(tx *store.Tx) error { return tx.PutBot(first.Daemon, "900001", 1) }); err != nil {
		t.Fatal(err)
	}
	return msg.BotMark("900001", strconv.FormatInt(s.Me().ID, 10))
}

// The numbers of an earlier bot's messages are those of others here.
func TestSend_LaterBot_TouchesItsOwnMessagesOnly(t *testing.T) {
	s, p := startSender(t)
	mark := s.laterBot(t, p)
	alice := s.User("Ada", "ada")
	group := s.Group("Team", alice)
	group.AddBot(alice)
	for chat, at := range map[string]fake.Place{"private chat": s.dm, "basic group": group} {
		jid := telegramapi.JID("telegram", at.ChatID)
		id, err := sendAll(t, p, &msg.Message{ChatJID: jid, Content: "one"})
		number, own := strings.CutPrefix(id, mark)
		if err != nil || !own {
			t.Fatalf("%s: sent as %q, %v", chat, id, err)
		}
		for what, row := range map[string]*msg.Message{
			"edit":     {Kind: msg.KindEdit, Content: "two"},
			"reaction": {Kind: msg.KindReaction, Content: "👍"},
			"poll":     {Kind: msg.KindPoll, Content: `{"question":"Lunch?","options":["yes","no"]}`},
			"deletion": {Kind: msg.KindDelete},
		} {
			row.ChatJID, row.TargetID = jid, number
			calls := len(s.Sent())
			var f *adapter.Failure
			if _, err := sendAll(t, p, row); !errors.As(err, &f) || f.Class != msg.Permanent || !strings.Contains(err.Error(), "of another bot") || len(s.Sent()) != calls {
				t.Errorf("%s: %s of an earlier bot's message: %v", chat, what, err)
			}
		}
		if text := at.Messages()[len(at.Messages())-1].Text; text != "one" {
			t.Errorf("%s: the message is %q now", chat, text)
		}
		for to, want := range map[string]string{number: "", id: number} {
			if _, err := sendAll(t, p, &msg.Message{ChatJID: jid, ReplyToID: to, Content: "answer"}); err != nil {
				t.Fatal(err)
			}
			got := ""
			if answered := s.last().Messages[0].ReplyTo; answered != nil {
				got = strconv.Itoa(answered.ID)
			}
			if got != want {
				t.Errorf("%s: the answer to %q is one to %q", chat, to, got)
			}
		}
		for _, row := range []*msg.Message{
			{Kind: msg.KindReaction, Content: "👍"}, {Kind: msg.KindEdit, Content: "two"}, {Kind: msg.KindDelete},
		} {
			row.ChatJID, row.TargetID = jid, id
			if _, err := sendAll(t, p, row); err != nil {
				t.Errorf("%s: %s of its own message: %v", chat, row.Kind, err)
			}
		}
		if _, err := sendAll(t, p, &msg.Message{ChatJID: jid, ThreadID: number, Content: "where?"}); err != nil || s.last().Text != outsideTopic+"where?" {
			t.Errorf("%s: into an earlier bot's topic: %q, %v", chat, s.last().Text, err)
		}
	}
	if id := s.begun(t, p); strings.HasPrefix(id, mark) {
		t.Errorf("the supergroup has a message %s", id)
	}
}

// What needs to know the bot waits for getMe, and was not sent.
func TestSend_BotNotKnown_IsNotSent(t *testing.T) {
	s, p := startSender(t)
	m := &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Content: "one"}
	parts, err := p.Cut(m)
	if err != nil {
		t.Fatal(err)
	}
	for class, fault := range map[msg.ErrorClass]fake.Fault{
		msg.Auth: {Status: http.StatusUnauthorized}, msg.Transient: {Status: http.StatusBadGateway}, msg.Rate: {RetryAfter: 5},
	} {
		fault.Method = "getMe"
		s.InjectFault(fault)
		var f *adapter.Failure
		if _, err := p.Send(t.Context(), m, parts[0]); !errors.As(err, &f) || f.Class != class {
			t.Errorf("want %s: %v", class, err)
		}
	}
	if n := len(s.Sent()); n != 0 {
		t.Errorf("%d messages are sent", n)
	}
	if id, err := adaptertest.Send(t.Context(), p, m, parts[0]); id == "" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}
