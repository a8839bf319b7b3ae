package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/discord"
)

// fixture is a fake Discord with a channel of a guild, a thread of it, and a private chat. Each has a
// message: an empty channel cannot be searched.
type fixture struct {
	*fake.Server
	channel, thread, dm fake.Place
	plan                adaptertest.Plan
}

// newFixtureAt makes a fixture. All of them have the same ids.
func newFixtureAt(now func() time.Time) *fixture {
	s := &fixture{Server: fake.New(fake.Options{Now: now})}
	alice := s.User("Alice", "alice")
	s.channel = s.Guild("Team", alice).Channel("general")
	s.channel.Say(alice, "hello")
	s.thread = s.channel.Thread(alice, "Thread")
	s.thread.Say(alice, "hello")
	s.dm = s.DM(alice)
	s.dm.Say(alice, "hello")
	return s
}

func newFixture() *fixture {
	return newFixtureAt(func() time.Time { return time.UnixMilli(1795262400000) })
}

func (s *fixture) address(channel string) string {
	if channel == s.dm.ChannelID {
		return "discord:dm-" + channel
	}
	return "discord:" + channel
}

func TestConformance(t *testing.T) {
	s := newFixture()
	adaptertest.Run(t, adaptertest.Platform{
		Name: "discord", Chats: [2]string{s.address(s.channel.ChannelID), s.address(s.dm.ChannelID)},
		Thread: s.thread.ChannelID, Replies: true,
		Options: func(o *adapter.Options) { o.Mark = true },
		TooLong: func(text string) bool { return utf8.RuneCountInString(text) > maxText },
		Marked:  func(text string) bool { return strings.HasPrefix(text, "(possibly sent twice) ") },
		New:     newRemote,
	})
}

func newRemote(t testing.TB, st func() *store.Store) adaptertest.Remote {
	s := newFixture()
	base, err := s.StartWith("127.0.0.1:0", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		for _, c := range s.Calls() {
			if len(c.Pings) > 0 {
				t.Errorf("%q pings %q", c.Text, c.Pings)
			}
		}
	})
	return adaptertest.Remote{
		Connect: func() adapter.Platform {
			return unreachable{&Sender{API: discordapi.NewClient(base, s.Token(), adapter.NewCallClient()), Store: st(), Now: time.Now}, s}
		},
		Received: s.received,
		Fail:     s.plan.Fail,
	}
}

func (s *fixture) received() (all []adaptertest.Received) {
	for _, c := range s.Sent() {
		if c.Route != fake.CreateMessage {
			continue
		}
		r := adaptertest.Received{ChatJID: s.address(c.ChannelID), Text: c.Text, ReplyTo: c.ReplyTo}
		if c.ChannelID == s.thread.ChannelID {
			r.ChatJID, r.Thread = s.address(s.channel.ChannelID), c.ChannelID
		}
		all = append(all, r)
	}
	return all
}

// ServeHTTP injects the planned faults.
func (s *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	channel, sends := strings.CutSuffix(r.URL.Path, "/messages")
	if !sends || r.Method != http.MethodPost {
		s.Server.ServeHTTP(w, r)
		return
	}
	chat := s.address(channel[strings.LastIndexByte(channel, '/')+1:])
	s.plan.Deliver(chat, s.inject, func() { s.Server.ServeHTTP(w, r) })
}

func (s *fixture) inject(f adaptertest.Fault) { s.InjectFault(faultOf(f)) }

func faultOf(f adaptertest.Fault) fake.Fault {
	switch f.Class {
	case msg.Rate:
		return fake.Fault{Route: fake.CreateMessage, RetryAfter: max(time.Second, f.After)}
	case msg.Auth:
		return fake.Fault{Route: fake.CreateMessage, Status: http.StatusUnauthorized}
	case msg.Ambiguous:
		return fake.Fault{Route: fake.CreateMessage, Status: http.StatusBadGateway, After: f.Arrived}
	}
	return fake.Fault{Route: fake.CreateMessage, Status: http.StatusForbidden, Code: 50013, Message: "Missing Permissions"}
}

// unreachable is a Sender whose planned parts do not reach Discord.
type unreachable struct {
	*Sender
	fixture *fixture
}

func (u unreachable) Send(ctx context.Context, m *msg.Message, p adapter.Part) (string, error) {
	if u.fixture.plan.Unreached(m.ChatJID) {
		return "", discordapi.Failure(fmt.Errorf("POST: %w: %w", adapter.ErrUnsent, errors.New("connection refused")))
	}
	return u.Sender.Send(ctx, m, p)
}
