package socket

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"

	fake "arizuko/pkg/testkit/fakes/slack"
)

// ear hears what happens on a connection.
type ear struct {
	t      *testing.T
	server *fake.Server
	api    *slack.Client
	ctx    context.Context
	on     func(kind string, payload []byte) (any, error) // nil takes everything

	mu    sync.Mutex
	heard []string
}

func newEar(t *testing.T) *ear {
	t.Helper()
	server := fake.New(fake.Options{})
	base, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	api := slack.New(server.BotToken(), slack.OptionAPIURL(base+"/api/"), slack.OptionAppLevelToken(server.AppToken()))
	return &ear{t: t, server: server, api: api, ctx: ctx}
}

func (e *ear) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, what)
}

func (e *ear) count(what string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.heard {
		if strings.HasPrefix(h, what) {
			n++
		}
	}
	return n
}

// listen listens in the background; end tells how that ended.
func (e *ear) listen() (end <-chan error, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(e.ctx)
	e.t.Cleanup(cancel)
	over := make(chan error, 1)
	go func() {
		over <- Listen(ctx, e.api, Handler{
			Connected:  func() { e.note("connected") },
			Unreadable: func(err error) { e.note("unreadable: " + err.Error()) },
			Now:        time.Now,
			Take: func(_ context.Context, kind string, payload []byte) (any, error) {
				e.note(kind)
				if e.on != nil {
					return e.on(kind, payload)
				}
				return nil, nil
			},
		})
	}()
	return over, cancel
}

func (e *ear) until(what string, happens func() bool) {
	e.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !happens() {
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			e.t.Fatalf("still waiting until %s; heard %q", what, e.heard)
		}
	}
}

func (e *ear) ended(end <-chan error) error {
	e.t.Helper()
	select {
	case err := <-end:
		return err
	case <-e.ctx.Done():
		e.t.Fatal("it has not ended")
		return nil
	}
}

func TestListen(t *testing.T) {
	e := newEar(t)
	end, stop := e.listen()
	e.until("it is connected", func() bool { return e.count("connected") == 1 })
	alice := e.server.User("Alice", "alice")
	team := e.server.Channel("team", alice)
	team.Say(alice, "hello")
	team.Command(alice, "/new", "")
	if err := e.server.WaitConfirmed(e.ctx); err != nil {
		t.Fatal(err)
	}
	if e.count(Event) != 1 || e.count(Command) != 1 {
		t.Errorf("heard %q", e.heard)
	}
	stop()
	if err := e.ended(end); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// TestOddFrames are told of, or acknowledged, and break nothing.
func TestOddFrames(t *testing.T) {
	e := newEar(t)
	e.listen()
	e.until("it is connected", func() bool { return e.count("connected") == 1 })
	for _, frame := range []string{
		`{`, // of which the library says nothing
		`{x`, `[]`, `7`, `"x"`, `{"type":7}`, `{"type":"new"}`, `{"type":"new","envelope_id":"e1","payload":{}}`,
		`{"type":"events_api","envelope_id":"e2"}`, `{"type":"slash_commands","envelope_id":"e3","payload":[]}`,
	} {
		e.server.InjectFrame(frame)
	}
	e.until("all are taken or told of", func() bool { return e.count("unreadable")+e.count("new")+e.count(Event)+e.count(Command) == 9 })
	e.until("those with an id are acknowledged", func() bool {
		var ids []string
		for _, a := range e.server.Acks() {
			ids = append(ids, a.Envelope)
		}
		return slices.Equal(ids, []string{"e1", "e2", "e3"})
	})
	if e.count("connected") != 1 {
		t.Errorf("heard %q", e.heard)
	}
}

// TestReconnects has Slack replace a connection, which is nobody's trouble, and then end each one
// as soon as it stands.
func TestReconnects(t *testing.T) {
	e := newEar(t)
	end, _ := e.listen()
	e.until("it is connected", func() bool { return e.count("connected") == 1 })
	e.server.Disconnect("refresh_requested")
	e.until("it is connected again", func() bool { return e.count("connected") == 2 })
	if n := e.server.Sockets(); n > 1 {
		t.Errorf("%d connections", n)
	}
	for n := 3; ; n++ {
		e.server.DropSockets()
		e.until("it is connected or over", func() bool { return e.count("connected") == n || len(end) > 0 })
		if len(end) > 0 {
			break
		}
	}
	if err := e.ended(end); err == nil || !strings.Contains(err.Error(), "at once") || e.count("connected") > 3 {
		t.Errorf("ended with %v after %q", err, e.heard)
	}
}

func TestRefusals(t *testing.T) {
	for word, spoil := range map[string]func(*fake.Server){
		"invalid_auth":            func(s *fake.Server) { s.Revoke(s.AppToken(), "invalid_auth") },
		"socket_mode_not_enabled": func(s *fake.Server) { s.SetSocketMode(false) },
		"internal_error": func(s *fake.Server) {
			s.InjectFault(fake.Fault{Method: "apps.connections.open", Error: "internal_error"})
		},
		"bad handshake": func(s *fake.Server) { s.InjectFault(fake.Fault{Method: "socket", Status: 503}) },
	} {
		e := newEar(t)
		spoil(e.server)
		end, _ := e.listen()
		if err := e.ended(end); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: ended with %v", word, err)
		}
	}
}

// TestWhatIsNotTakenIsNotAcknowledged ends the connection: it comes again on the next one.
func TestWhatIsNotTakenIsNotAcknowledged(t *testing.T) {
	e := newEar(t)
	full := errors.New("full")
	e.on = func(string, []byte) (any, error) { return nil, full }
	end, _ := e.listen()
	e.until("it is connected", func() bool { return e.count("connected") == 1 })
	alice := e.server.User("Alice", "alice")
	e.server.Channel("team", alice).Say(alice, "hello")
	if err := e.ended(end); !errors.Is(err, full) {
		t.Errorf("ended with %v", err)
	}
	if acks := e.server.Acks(); len(acks) > 0 {
		t.Errorf("acknowledged %+v", acks)
	}
}
