package main

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

// threadTS stands for the thread of every scene: its own ids hold the time.
const threadTS = "1000000000.000001"

// scene is a Slack with a thread of a channel and a chat in private; each has the same ids.
type scene struct {
	*fake.Server
	thread, dm fake.Place
	plan       adaptertest.Plan
}

func newScene() *scene {
	s := &scene{Server: fake.New(fake.Options{})}
	alice := s.User("Alice", "alice")
	s.dm = s.DM(alice)
	team := s.Channel("team", alice)
	s.thread = team.Thread(team.Say(alice, "question").TS)
	return s
}

// calling is what no text may have on the wire, where it has people be called.
var calling = regexp.MustCompile(`<[!@]`)

// TestConformance has Slack pass what every platform has to.
func TestConformance(t *testing.T) {
	s := newScene()
	adaptertest.Run(t, adaptertest.Platform{
		Name: "slack", Chats: [2]string{"slack:" + s.thread.ChannelID, "slack:" + s.dm.ChannelID}, Thread: threadTS,
		Options:  func(o *adapter.Options) { o.Mark = true },
		TooLong:  func(text string) bool { return utf8.RuneCountInString(text) > textMost },
		Marked:   func(text string) bool { return strings.HasPrefix(text, "(possibly sent twice) ") },
		Mentions: calling.MatchString,
		New:      newRemote,
	})
}

func newRemote(t testing.TB, st func() *store.Store) adaptertest.Remote {
	s := newScene()
	base, err := s.StartWith("127.0.0.1:0", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return adaptertest.Remote{
		Connect: func() adapter.Platform {
			return unreachable{&slack{api: slackapi.NewClient(base+"/api/", s.BotToken(), ""), store: st()}, s}
		},
		Received: s.received,
		Fail:     s.plan.Fail,
	}
}

func (s *scene) received() (all []adaptertest.Received) {
	for _, c := range s.Sent() {
		if c.Method == "chat.postMessage" {
			thread := strings.ReplaceAll(c.ThreadTS, s.thread.ThreadTS, threadTS)
			all = append(all, adaptertest.Received{ChatJID: "slack:" + c.ChannelID, Thread: thread, Text: c.Text})
		}
	}
	return all
}

// ServeHTTP spoils the calls that it was told to.
func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing is refused
	body = bytes.ReplaceAll(body, []byte(threadTS), []byte(s.thread.ThreadTS))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if !strings.HasSuffix(r.URL.Path, "/chat.postMessage") {
		s.Server.ServeHTTP(w, r)
		return
	}
	form, _ := url.ParseQuery(string(body))
	s.plan.Deliver("slack:"+form.Get("channel"), s.spoil, func() { s.Server.ServeHTTP(w, r) })
}

func (s *scene) spoil(f adaptertest.Fault) { s.InjectFault(spoilt(f)) }

func spoilt(f adaptertest.Fault) fake.Fault {
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

// unreachable is Slack, which now and then cannot be reached.
type unreachable struct {
	*slack
	scene *scene
}

func (u unreachable) Send(ctx context.Context, m *msg.Message, p adapter.Part) (string, error) {
	if u.scene.plan.Unreached(m.ChatJID) {
		return "", slackapi.Failure(fmt.Errorf("chat.postMessage: %w", &net.OpError{Op: "dial"}))
	}
	return u.slack.Send(ctx, m, p)
}
