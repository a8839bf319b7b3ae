package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

// fixture is a fake Telegram with a private chat and a forum topic. Each fixture has the same ids.
type fixture struct {
	*fake.Server
	dm, topic fake.Place
	plan      adaptertest.Plan
}

func newFixture() *fixture {
	s := &fixture{Server: fake.New(fake.Options{})}
	alice := s.User("Alice", "alice")
	s.dm = s.DM(alice)
	s.dm.Say(alice, "/start")
	forum := s.Forum("Forum", alice)
	forum.AddBot(alice)
	s.topic = forum.Topic(alice, "Topic")
	return s
}

func TestConformance(t *testing.T) {
	s := newFixture()
	adaptertest.Run(t, adaptertest.Platform{
		Name: "telegram", Chats: [2]string{telegramapi.JID(s.topic.ChatID), telegramapi.JID(s.dm.ChatID)},
		Thread: strconv.Itoa(s.topic.ThreadID), Replies: true,
		Options: func(o *adapter.Options) { o.Mark = true },
		TooLong: func(text string) bool { return render.UTF16Len(text) > maxText },
		Marked:  func(text string) bool { return strings.HasPrefix(text, "(possibly sent twice) ") },
		New:     func(t testing.TB, _ func() *store.Store) adaptertest.Remote { return newRemote(t) },
	})
}

func newRemote(t testing.TB) adaptertest.Remote {
	s := newFixture()
	base, err := s.StartWith("127.0.0.1:0", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return adaptertest.Remote{
		Connect: func() adapter.Platform {
			return unreachable{&Sender{API: telegramapi.NewClient(base, s.Token(), adapter.NewCallClient())}, s}
		},
		Received: s.received,
		Fail:     s.plan.Fail,
	}
}

func (s *fixture) received() (all []adaptertest.Received) {
	for _, c := range s.Sent() {
		if c.Method != "sendMessage" {
			continue
		}
		r := adaptertest.Received{ChatJID: telegramapi.JID(c.ChatID), Text: c.Text}
		if c.ThreadID != 0 {
			r.Thread = strconv.Itoa(c.ThreadID)
		}
		if c.ReplyTo != 0 {
			r.ReplyTo = strconv.Itoa(c.ReplyTo)
		}
		all = append(all, r)
	}
	return all
}

// ServeHTTP injects the planned faults.
func (s *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/sendMessage") {
		s.Server.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body) // an incomplete form is refused
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body))
	s.plan.Deliver("telegram:"+form.Get("chat_id"), s.inject, func() { s.Server.ServeHTTP(w, r) })
}

func (s *fixture) inject(f adaptertest.Fault) { s.InjectFault(faultOf(f)) }

func faultOf(f adaptertest.Fault) fake.Fault {
	switch f.Class {
	case msg.Rate:
		return fake.Fault{Method: "sendMessage", RetryAfter: max(1, int(f.After/time.Second))}
	case msg.Auth:
		return fake.Fault{Method: "sendMessage", Status: http.StatusUnauthorized}
	case msg.Ambiguous:
		return fake.Fault{Method: "sendMessage", Status: http.StatusBadGateway, After: f.Arrived}
	}
	return fake.Fault{Method: "sendMessage", Status: http.StatusForbidden, Description: "Forbidden: bot was blocked by the user"}
}

// unreachable is a Sender whose planned parts do not reach Telegram.
type unreachable struct {
	*Sender
	fixture *fixture
}

func (u unreachable) Send(ctx context.Context, m *msg.Message, p adapter.Part) (string, error) {
	if u.fixture.plan.Unreached(m.ChatJID) {
		return "", telegramapi.Failure(fmt.Errorf("sendMessage: %w: %w", adapter.ErrUnsent, errors.New("connection refused")))
	}
	return u.Sender.Send(ctx, m, p)
}
