package outbound

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/events"
	"arizuko/slakd/internal/slackapi"
)

// threadTS replaces the id of every fixture's thread, since real ids contain the time.
const threadTS = "1000000000.000001"

// fixture is a fake Slack with a thread of a channel and a private chat. Each fixture has the same ids.
type fixture struct {
	*fake.Server
	alice      fake.User
	thread, dm fake.Place
	plan       adaptertest.Plan
}

func newFixture(o fake.Options) *fixture {
	s := &fixture{Server: fake.New(o)}
	alice := s.User("Alice", "alice")
	s.alice, s.dm = alice, s.DM(alice)
	team := s.Channel("team", alice)
	s.thread = team.Thread(team.Say(alice, "question").TS)
	return s
}

// ping matches the mentions that notify users; no text may contain one when it is sent.
var ping = regexp.MustCompile(`<[!@]`)

func TestConformance(t *testing.T) { adaptertest.Run(t, platform(fake.Options{})) }

// Under Slack's limits as well, of posts and of the calls that search.
func TestConformance_RateLimits(t *testing.T) {
	adaptertest.Run(t, platform(fake.Options{RateLimits: true}), "thirty minutes down", "cut before the answer", "minute of 502",
		"rows waiting in an outage", "flood wait of the account", "two chats", "text in order", "ambiguous failure", "crash before the record")
}

// In a thread previews are streams.
func TestConformance_Streams(t *testing.T) {
	p := platform(fake.Options{})
	p.Stream = &adaptertest.Stream{Thread: threadTS, Asker: "slack:" + newFixture(fake.Options{}).alice.ID}
	p.New = func(t testing.TB, st func() *store.Store) adaptertest.Remote {
		s := newFixture(fake.Options{RateLimits: true})
		remote := newRemote(t, s, st)
		remote.Shown = func() []adaptertest.Shown { return s.shownIn(s.thread) }
		t.Cleanup(func() {
			if !slices.ContainsFunc(s.Calls(), func(c fake.Call) bool { return c.Method == "chat.startStream" && c.Accepted }) {
				t.Error("no preview is a stream")
			}
		})
		return remote
	}
	adaptertest.Run(t, p, adaptertest.PreviewCases()...)
}

func platform(o fake.Options) adaptertest.Platform {
	s := newFixture(o)
	return adaptertest.Platform{
		Name: "slack", Chats: [2]string{"slack:" + s.thread.ChannelID, "slack:" + s.dm.ChannelID}, Thread: threadTS,
		Options:  func(o *adapter.Options) { o.Resend = adapter.ResendMarked },
		TooLong:  func(text string) bool { return utf8.RuneCountInString(text) > maxText },
		Marked:   func(text string) bool { return strings.HasPrefix(text, "(possibly sent twice) ") },
		Mentions: ping.MatchString,
		New:      func(t testing.TB, st func() *store.Store) adaptertest.Remote { return newRemote(t, newFixture(o), st) }, Outages: true, Floods: true, Closes: true, Deletes: true, Photos: true, Writes: true, Previews: true, Questions: true,
		Lane: func(i int) string { return fmt.Sprint("slack:C", 7000000000+i) },
	}
}

func newRemote(t testing.TB, s *fixture, st func() *store.Store) adaptertest.Remote {
	data := t.TempDir()
	n := nettest.Serve(t, s)
	clients := adapter.Network{Dial: n.Dial, TLS: n.TLS()}
	return adaptertest.Remote{
		Connect: func() adapter.Platform {
			return unreachable{&Sender{Identity: first, Log: slog.New(slog.DiscardHandler), API: slackapi.NewClient("https://slack.test/api/", s.BotToken(), "", clients.CallClient()), Store: st(), Data: data}, s}
		},
		Listen: func() adapter.Listener {
			api := slackapi.NewClient("https://slack.test/api/", s.BotToken(), s.AppToken(), clients.ListenClient())
			return events.New(events.Options{
				Identity: first, API: api, Store: st(), RemoveStaleMarks: func(context.Context) error { return nil }, Now: time.Now, Network: clients,
			})
		},
		Received: s.received,
		Fail:     s.plan.Fail, SetOutage: n.SetOutage, Requests: n.Requests, Asked: s.plan.Asked,
		FloodAccount: func(d time.Duration) { s.Flood("chat.postMessage", d) },
		CloseThread:  s.thread.LockThread, DeleteThread: func() { s.thread.Delete(s.alice, s.thread.ThreadTS) },
		RefusePhoto: func() ([]byte, string) {
			s.InjectFault(fake.Fault{Method: "files.getUploadURLExternal", Error: "file_uploads_disabled"})
			return []byte("\x89PNG\r\n\x1a\n"), "file_uploads_disabled"
		},
		Data:          data,
		Write:         func(text string) { s.dm.Say(s.alice, text) },
		RefuseButtons: func() { s.InjectFault(fake.Fault{Method: "chat.postMessage", Error: "invalid_blocks"}) },
		Shown:         func() []adaptertest.Shown { return s.shownIn(s.Place(s.thread.ChannelID, "")) }, Delete: s.thread.Remove,
		FailEdit: func(f adaptertest.Fault) {
			fault := faultOf(f)
			fault.Method = "chat.update"
			s.InjectFault(fault)
		},
	}
}

func (s *fixture) received() (all []adaptertest.Received) {
	for _, c := range s.Sent() {
		if c.Method != "chat.postMessage" && c.Method != "files.completeUploadExternal" {
			continue
		}
		r := adaptertest.Received{ChatJID: "slack:" + c.ChannelID, Thread: strings.ReplaceAll(c.ThreadTS, s.thread.ThreadTS, threadTS), Text: c.Text}
		if len(c.Files) > 0 {
			r.File = c.Files[0].Name
		}
		all = append(all, r)
	}
	return all
}

// shownIn are the messages of the bot in a place, with the text and the plan of open streams.
func (s *fixture) shownIn(p fake.Place) (all []adaptertest.Shown) {
	for _, m := range p.Messages() {
		if m.User != s.Me().ID {
			continue
		}
		shown := adaptertest.Shown{ID: m.TS, Text: m.Text, Stop: m.Buttons()[msg.StopLabel], Buttons: adaptertest.Buttons(m.Buttons())}
		if stream, is := p.Stream(m.TS); is && stream.IsOpen() {
			shown.Text = stream.Text + " " + stream.Plan
		}
		all = append(all, shown)
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
	s.plan.Deliver(r.Context(), "slack:"+form.Get("channel"), s.inject, func() { s.Server.ServeHTTP(w, r) })
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
