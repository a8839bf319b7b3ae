package outbound

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/slackapi"
)

// threadTS replaces the id of every fixture's thread, since real ids contain the time.
const threadTS = "1000000000.000001"

// fixture is a fake Slack with a thread of a channel and a private chat. Each fixture has the same ids.
type fixture struct {
	*fake.Server
	thread, dm fake.Place
	plan       adaptertest.Plan
}

func newFixture() *fixture {
	s := &fixture{Server: fake.New(fake.Options{})}
	alice := s.User("Alice", "alice")
	s.dm = s.DM(alice)
	team := s.Channel("team", alice)
	s.thread = team.Thread(team.Say(alice, "question").TS)
	return s
}

// ping matches the mentions that notify users; no text may contain one when it is sent.
var ping = regexp.MustCompile(`<[!@]`)

func TestConformance(t *testing.T) {
	s := newFixture()
	adaptertest.Run(t, adaptertest.Platform{
		Name: "slack", Chats: [2]string{"slack:" + s.thread.ChannelID, "slack:" + s.dm.ChannelID}, Thread: threadTS,
		Options:  func(o *adapter.Options) { o.Mark = true },
		TooLong:  func(text string) bool { return utf8.RuneCountInString(text) > maxText },
		Marked:   func(text string) bool { return strings.HasPrefix(text, "(possibly sent twice) ") },
		Mentions: ping.MatchString,
		New:      newRemote,
	})
}

func newRemote(t testing.TB, st func() *store.Store) adaptertest.Remote {
	s := newFixture()
	base, err := s.StartWith("127.0.0.1:0", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return adaptertest.Remote{
		Connect: func() adapter.Platform {
			return unreachable{&Sender{API: slackapi.NewClient(base+"/api/", s.BotToken(), "", adapter.NewCallClient()), Store: st()}, s}
		},
		Received: s.received,
		Fail:     s.plan.Fail,
	}
}

func (s *fixture) received() (all []adaptertest.Received) {
	for _, c := range s.Sent() {
		if c.Method == "chat.postMessage" {
			thread := strings.ReplaceAll(c.ThreadTS, s.thread.ThreadTS, threadTS)
			all = append(all, adaptertest.Received{ChatJID: "slack:" + c.ChannelID, Thread: thread, Text: c.Text})
		}
	}
	return all
}

// ServeHTTP injects the planned faults.
func (s *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete form is refused
	body = bytes.ReplaceAll(body, []byte(threadTS), []byte(s.thread.ThreadTS))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if !strings.HasSuffix(r.URL.Path, "/chat.postMessage") {
		s.Server.ServeHTTP(w, r)
		return
	}
	form, _ := url.ParseQuery(string(body))
	s.plan.Deliver("slack:"+form.Get("channel"), s.inject, func() { s.Server.ServeHTTP(w, r) })
}

func (s *fixture) inject(f adaptertest.Fault) { s.InjectFault(faultOf(f)) }

func faultOf(f adaptertest.Fault) fake.Fault {
	switch f.Class {
	case msg.Rate:
		return fake.Fault{Method: "chat.postMessage", RetryAfter: max(1, int(f.After/time.Second))}
	case msg.Auth:
		return fake.Fault{Method: "chat.postMessage", Error: "invalid_auth"}
	case msg.Ambiguous:
		return fake.Fault{Method: "chat.postMessage", Status: http.StatusBadGateway, After: f.Arrived}
	}
	return fake.Fault{Method: "chat.postMessage", Error: "is_archived"}
}

// unreachable is a Sender whose planned parts do not reach Slack.
type unreachable struct {
	*Sender
	fixture *fixture
}

func (u unreachable) Send(ctx context.Context, m *msg.Message, p adapter.Part) (string, error) {
	if u.fixture.plan.Unreached(m.ChatJID) {
		return "", slackapi.Failure(fmt.Errorf("chat.postMessage: %w", &net.OpError{Op: "dial"}))
	}
	return u.Sender.Send(ctx, m, p)
}
