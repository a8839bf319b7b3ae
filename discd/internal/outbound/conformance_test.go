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
	"arizuko/discd/internal/events"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/discord"
)

// fixture is a fake Discord with a channel of a guild, a thread of it, and a private chat. Each has a
// message: an empty channel cannot be searched.
type fixture struct {
	*fake.Server
	alice               fake.User
	channel, thread, dm fake.Place
	plan                adaptertest.Plan
}

// fixtureTime is when a fixture is made.
var fixtureTime = time.UnixMilli(1_795_262_400_000)

// newFixtureAt makes a fixture. All of them have the same ids.
func newFixtureAt(now func() time.Time) *fixture { return newFixtureWith(fake.Options{Now: now}) }

func newFixtureWith(o fake.Options) *fixture {
	s := &fixture{Server: fake.New(o)}
	alice := s.User("Alice", "alice")
	s.alice = alice
	s.channel = s.Guild("Team", alice).Channel("general")
	s.channel.Say(alice, "hello")
	s.thread = s.channel.Thread(alice, "Thread")
	s.thread.Say(alice, "hello")
	s.dm = s.DM(alice)
	s.dm.Say(alice, "hello")
	return s
}

func newFixture() *fixture {
	return newFixtureAt(func() time.Time { return fixtureTime })
}

func (s *fixture) address(channel string) string {
	if channel == s.dm.ChannelID {
		return "discord:dm-" + channel
	}
	return "discord:" + channel
}

func TestConformance(t *testing.T) { adaptertest.Run(t, platform()) }

// The proxy before Discord refuses the address, and not the API the bot.
func TestConformance_Ban_HoldsTheAccount(t *testing.T) {
	p := platform()
	p.New = func(t testing.TB, st func() *store.Store) adaptertest.Remote {
		s, remote := newRemoteOf(t, st)
		remote.FloodAccount = s.Ban
		return remote
	}
	adaptertest.Run(t, p, "flood wait of the account")
}

func platform() adaptertest.Platform {
	s := newFixture()
	return adaptertest.Platform{
		Name: "discord", Chats: [2]string{s.address(s.channel.ChannelID), s.address(s.dm.ChannelID)},
		Thread: s.thread.ChannelID, Replies: true,
		Options: func(o *adapter.Options) { o.Resend = adapter.ResendMarked },
		TooLong: func(text string) bool { return utf8.RuneCountInString(text) > maxText },
		Marked:  func(text string) bool { return strings.HasPrefix(text, "(possibly sent twice) ") },
		New:     newRemote, Outages: true, Floods: true, Closes: true, Deletes: true, Photos: true, Writes: true, Previews: true, Questions: true, GoneID: "4711",
		Lane: func(i int) string { return fmt.Sprint("discord:", 7000000000+i) },
	}
}

func newRemote(t testing.TB, st func() *store.Store) adaptertest.Remote {
	_, remote := newRemoteOf(t, st)
	return remote
}

func newRemoteOf(t testing.TB, st func() *store.Store) (*fixture, adaptertest.Remote) {
	began := time.Now()
	s, data := newFixtureAt(func() time.Time { return fixtureTime.Add(time.Since(began)) }), t.TempDir()
	n := nettest.Serve(t, s)
	clients := adapter.Network{Dial: n.Dial, TLS: n.TLS()}
	t.Cleanup(func() {
		for _, c := range s.Calls() {
			if len(c.Pings) > 0 {
				t.Errorf("%q pings %q", c.Text, c.Pings)
			}
		}
	})
	return s, adaptertest.Remote{
		Connect: func() adapter.Platform {
			return unreachable{&Sender{Identity: first, API: discordapi.NewClient("https://discord.test", s.Token(), clients.CallClient()), Store: st(), Now: time.Now, Data: data}, s}
		},
		Listen: func() adapter.Listener {
			return events.NewListener(discordapi.NewClient("https://discord.test", s.Token(), clients.ListenClient()), st(), s.Token(), clients)
		},
		Received: s.received,
		Fail:     s.plan.Fail, SetOutage: n.SetOutage, Requests: n.Requests, FloodAccount: s.Flood, Asked: s.plan.Asked,
		CloseThread: func() { s.thread.Archive(true, true) }, DeleteThread: s.thread.DeleteChannel,
		RefusePhoto: func() ([]byte, string) {
			s.InjectFault(fake.Fault{Route: fake.CreateMessage, Status: http.StatusRequestEntityTooLarge, Code: tooLarge, Message: "Request entity too large"})
			return []byte("\x89PNG\r\n\x1a\n"), "Request entity too large"
		},
		RefuseButtons: func() {
			s.InjectFault(fake.Fault{Route: fake.CreateMessage, Status: http.StatusBadRequest,
				Body: `{"code":50035,"message":"Invalid Form Body","errors":{"components":{"_errors":[{"code":"COMPONENT_LAYOUT_WIDTH_EXCEEDED"}]}}}`})
		},
		Shown: s.shown, Delete: func(id string) { s.channel.Delete(id) },
		FailEdit: func(f adaptertest.Fault) {
			fault := faultOf(f)
			fault.Route = fake.EditMessage
			s.InjectFault(fault)
		},
		Data:  data,
		Write: func(text string) { s.channel.Say(s.alice, text) },
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
		if len(c.Files) > 0 {
			r.File = c.Files[0].Name
		}
		all = append(all, r)
	}
	return all
}

func (s *fixture) shown() (all []adaptertest.Shown) {
	for _, m := range s.channel.Messages() {
		if m.Author.ID == s.Me().ID {
			all = append(all, adaptertest.Shown{ID: m.ID, Text: m.Content, Stop: m.Buttons()[msg.StopLabel], Buttons: adaptertest.Buttons(m.Buttons())})
		}
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
	s.plan.Deliver(r.Context(), chat, s.inject, func() { s.Server.ServeHTTP(w, r) })
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
