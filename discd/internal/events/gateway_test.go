package events

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	fake "arizuko/pkg/testkit/fakes/discord"
)

const maxWait = 20 * time.Second

// wait fails the test if a channel is not closed, or sent to, in time.
func wait[T any](t *testing.T, what string, c <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-time.After(maxWait):
		t.Fatalf("still waiting for %s", what)
	}
	return value
}

// start is a Discord, and where its gateway is.
func start(t *testing.T, o fake.Options) (*fake.Server, string) {
	t.Helper()
	s := fake.New(o)
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, "ws" + strings.TrimPrefix(base, "http") + "/gateway"
}

// TestResume takes a session up again after a break, with all of its events in the queue, and
// begins a new one after one that Discord has closed.
func TestResume(t *testing.T) {
	s, address := start(t, fake.Options{})
	alice := s.User("Alice", "alice")
	general := s.Guild("Team", alice).Channel("general")
	g := NewGateway(s.Token())
	g.address = address
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(resumes bool) <-chan struct{} {
		t.Helper()
		if g.resumes() != resumes {
			t.Errorf("resumes: %t", !resumes)
		}
		broken, err := g.open(ctx, discordgo.IntentsAllWithoutPrivileged)
		if err != nil {
			t.Fatal(err)
		}
		return broken
	}
	broken := open(false)
	general.Say(alice, "before")
	s.Disconnect()
	wait(t, "the break", broken)
	g.close()
	general.Say(alice, "meanwhile")
	broken = open(true)
	for _, want := range []string{"READY", "GUILD_CREATE", "MESSAGE_CREATE", "MESSAGE_CREATE", "RESUMED"} {
		if e := wait(t, want, g.queue()); e.Type != want {
			t.Errorf("%s instead of %s", e.Type, want)
		}
	}
	g.close()
	wait(t, "the end", broken)
	s.SetReachable(false)
	if _, err := g.open(ctx, discordgo.IntentsGuilds); err == nil || !g.resumes() {
		t.Errorf("unreachable: %v, resumes: %t", err, g.resumes())
	}
	s.SetReachable(true)
	s.InjectFault(fake.Fault{Route: fake.Connect, Status: 503})
	if _, err := g.open(ctx, discordgo.IntentsGuilds); err == nil || !g.resumes() {
		t.Errorf("refused at the door: %v, resumes: %t", err, g.resumes())
	}
}

// TestClosed says why, and what is to be done.
func TestClosed(t *testing.T) {
	s, address := start(t, fake.Options{Denied: fake.MessageContent})
	for token, want := range map[string]int{s.Token(): disallowedIntents, "wrong": authenticationFailed} {
		g := NewGateway(token)
		g.address = address
		_, err := g.open(t.Context(), discordgo.IntentMessageContent)
		if closed := new(ClosedError); !errors.As(err, &closed) || closed.Code != want || g.resumes() {
			t.Errorf("%v, want %d; resumes: %t", err, want, g.resumes())
		}
	}
	for code, want := range map[int]string{4004: "DISCORD_BOT_TOKEN", 4014: "Message Content", 4013: "upgrade", 4012: "upgrade", 4011: "guilds", 4000: "closed"} {
		if err := (&ClosedError{Code: code}).Error(); !strings.Contains(err, want) {
			t.Errorf("%d: %s", code, err)
		}
	}
}

// TestSilence ends with ctx, whatever the other side does not say.
func TestSilence(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	asked := make(chan struct{}, 1)
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			asked <- struct{}{}
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		g := NewGateway("token")
		g.address = "ws://" + silent.Addr().String()
		_, err := g.open(ctx, discordgo.IntentsGuilds)
		ended <- err
	}()
	wait(t, "the call", asked)
	cancel()
	if err := wait(t, "the end", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// opened opens a gateway on a fake, and closes it after the test.
func opened(t *testing.T, s *fake.Server, address string) *Gateway {
	t.Helper()
	g := NewGateway(s.Token())
	g.address = address
	t.Cleanup(g.close)
	if _, err := g.open(t.Context(), discordgo.IntentsAllWithoutPrivileged); err != nil {
		t.Fatal(err)
	}
	return g
}

// The library begins a session that Discord refuses again at once, for as long as Discord refuses.
func TestOpen_IdentifyTooSoon_BeginsOnceAllowed(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for seconds")
	}
	s, address := start(t, fake.Options{RateLimits: true})
	opened(t, s, address)
	g := NewGateway(s.Token())
	g.address = address
	t.Cleanup(g.close)
	for try := 0; s.Gateway().Identified == 1; try++ {
		broken, err := g.open(t.Context(), discordgo.IntentsGuilds)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-g.queue():
			if e.Type != "READY" {
				t.Errorf("%s instead of READY", e.Type)
			}
		case <-broken:
		}
		if try == 3 {
			t.Fatalf("refused each time: %+v", s.Gateway())
		}
	}
	if got := s.Gateway(); got.Early > 2*maxStarts {
		t.Errorf("%+v", got)
	}
}

// The library blocks for ever then.
func TestOpen_ReconnectAsFirstFrame_EndsInTime(t *testing.T) {
	s, address := start(t, fake.Options{})
	s.ReconnectNext(1)
	g := NewGateway(s.Token())
	g.address, g.timeout = address, 100*time.Millisecond
	if _, err := g.open(t.Context(), discordgo.IntentsGuilds); err == nil || g.resumes() {
		t.Errorf("%v, resumes: %t", err, g.resumes())
	}
	opened(t, s, address)
}

func TestOpen_HandshakeRefused_NamesAddressAndStatus(t *testing.T) {
	s, address := start(t, fake.Options{})
	s.InjectFault(fake.Fault{Route: fake.Connect, Status: 503, Times: 2})
	g := NewGateway(s.Token())
	g.address = address
	if _, err := g.open(t.Context(), discordgo.IntentsGuilds); err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v", err)
	}
}
