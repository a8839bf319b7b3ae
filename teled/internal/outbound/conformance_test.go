package main

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
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

// scene is a Telegram with a chat in private and a topic of a forum; each has the same ids.
type scene struct {
	*fake.Server
	dm, topic fake.Place
	plan      adaptertest.Plan
}

func newScene() *scene {
	s := &scene{Server: fake.New(fake.Options{})}
	alice := s.User("Alice", "alice")
	s.dm = s.DM(alice)
	s.dm.Say(alice, "/start")
	forum := s.Forum("Forum", alice)
	forum.AddBot(alice)
	s.topic = forum.Topic(alice, "Topic")
	return s
}

// TestConformance has Telegram pass what every platform has to.
func TestConformance(t *testing.T) {
	s := newScene()
	adaptertest.Run(t, adaptertest.Platform{
		Name: "telegram", Chats: [2]string{telegramapi.JID(s.topic.ChatID), telegramapi.JID(s.dm.ChatID)},
		Thread: strconv.Itoa(s.topic.ThreadID), Replies: true,
		Options: func(o *adapter.Options) { o.Mark = true },
		TooLong: func(text string) bool { return utf16Len(text) > textMost },
		Marked:  func(text string) bool { return strings.HasPrefix(text, "(possibly sent twice) ") },
		New:     func(t testing.TB, _ func() *store.Store) adaptertest.Remote { return newRemote(t) },
	})
}

func newRemote(t testing.TB) adaptertest.Remote {
	s := newScene()
	base, err := s.StartWith("127.0.0.1:0", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return adaptertest.Remote{
		Connect:  func() adapter.Platform { return unreachable{&telegram{api: telegramapi.NewClient(base, s.Token())}, s} },
		Received: s.received,
		Fail:     s.plan.Fail,
	}
}

func (s *scene) received() (all []adaptertest.Received) {
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

// ServeHTTP spoils the calls that it was told to.
func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/sendMessage") {
		s.Server.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body) // what is missing is refused
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body))
	s.plan.Deliver("telegram:"+form.Get("chat_id"), s.spoil, func() { s.Server.ServeHTTP(w, r) })
}

func (s *scene) spoil(f adaptertest.Fault) { s.InjectFault(spoilt(f)) }

func spoilt(f adaptertest.Fault) fake.Fault {
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

// unreachable is Telegram, which now and then cannot be reached.
type unreachable struct {
	*telegram
	scene *scene
}

func (u unreachable) Send(ctx context.Context, m *msg.Message, p adapter.Part) (string, error) {
	if u.scene.plan.Unreached(m.ChatJID) {
		return "", failure(fmt.Errorf("sendMessage: %w: %w", telegramapi.ErrUnsent, errors.New("connection refused")))
	}
	return u.telegram.Send(ctx, m, p)
}
