package main

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

// scene is a Discord with a channel of a guild, a thread of it, and a private chat. In each
// somebody has spoken: where nothing is to be read nothing can be looked for.
type scene struct {
	*fake.Server
	channel, thread, dm fake.Place
	plan                adaptertest.Plan
}

// sceneAt has the same ids whenever it is made.
func sceneAt(now func() time.Time) *scene {
	s := &scene{Server: fake.New(fake.Options{Now: now})}
	alice := s.User("Alice", "alice")
	s.channel = s.Guild("Team", alice).Channel("general")
	s.channel.Say(alice, "hello")
	s.thread = s.channel.Thread(alice, "Thread")
	s.thread.Say(alice, "hello")
	s.dm = s.DM(alice)
	s.dm.Say(alice, "hello")
	return s
}

func newScene() *scene {
	return sceneAt(func() time.Time { return time.UnixMilli(1795262400000) })
}

func (s *scene) address(channel string) string {
	if channel == s.dm.ChannelID {
		return "discord:dm-" + channel
	}
	return "discord:" + channel
}

// TestConformance has Discord pass what every platform has to.
func TestConformance(t *testing.T) {
	s := newScene()
	adaptertest.Run(t, adaptertest.Platform{
		Name: "discord", Chats: [2]string{s.address(s.channel.ChannelID), s.address(s.dm.ChannelID)},
		Thread: s.thread.ChannelID, Replies: true,
		Options: func(o *adapter.Options) { o.Mark = true },
		TooLong: func(text string) bool { return utf8.RuneCountInString(text) > textMost },
		Marked:  func(text string) bool { return strings.HasPrefix(text, "(possibly sent twice) ") },
		New:     newRemote,
	})
}

func newRemote(t testing.TB, st func() *store.Store) adaptertest.Remote {
	s := newScene()
	base, err := s.StartWith("127.0.0.1:0", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		for _, c := range s.Calls() {
			if len(c.Pings) > 0 {
				t.Errorf("%q calls on %q", c.Text, c.Pings)
			}
		}
	})
	return adaptertest.Remote{
		Connect: func() adapter.Platform {
			return unreachable{&discord{api: discordapi.NewClient(base, s.Token()), store: st(), now: time.Now}, s}
		},
		Received: s.received,
		Fail:     s.plan.Fail,
	}
}

func (s *scene) received() (all []adaptertest.Received) {
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

// ServeHTTP spoils the calls that it was told to.
func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	channel, sends := strings.CutSuffix(r.URL.Path, "/messages")
	if !sends || r.Method != http.MethodPost {
		s.Server.ServeHTTP(w, r)
		return
	}
	chat := s.address(channel[strings.LastIndexByte(channel, '/')+1:])
	s.plan.Deliver(chat, s.spoil, func() { s.Server.ServeHTTP(w, r) })
}

func (s *scene) spoil(f adaptertest.Fault) { s.InjectFault(spoilt(f)) }

func spoilt(f adaptertest.Fault) fake.Fault {
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

// unreachable is Discord, which now and then cannot be reached.
type unreachable struct {
	*discord
	scene *scene
}

func (u unreachable) Send(ctx context.Context, m *msg.Message, p adapter.Part) (string, error) {
	if u.scene.plan.Unreached(m.ChatJID) {
		return "", failure(fmt.Errorf("POST: %w: %w", discordapi.ErrUnsent, errors.New("connection refused")))
	}
	return u.discord.Send(ctx, m, p)
}
