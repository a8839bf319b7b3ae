package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"arizuko/pkg/adapter"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// socketFixture records what happens on a connection to a fake Slack.
type socketFixture struct {
	t      *testing.T
	server *fake.Server
	api    *slack.Client
	ctx    context.Context                                //nolint:containedctx // of the test
	on     func(kind string, payload []byte) (any, error) // nil accepts everything

	mu       sync.Mutex
	recorded []string
}

func newSocketFixture(t *testing.T) *socketFixture {
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
	return &socketFixture{t: t, server: server, api: api, ctx: ctx}
}

func (e *socketFixture) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorded = append(e.recorded, what)
}

func (e *socketFixture) count(what string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.recorded {
		if strings.HasPrefix(h, what) {
			n++
		}
	}
	return n
}

// listen listens in the background; end receives the error.
func (e *socketFixture) listen() (end <-chan error, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(e.ctx)
	e.t.Cleanup(cancel)
	over := make(chan error, 1)
	go func() {
		over <- listenSocket(ctx, e.api, adapter.Network{}, socketHandler{
			connected: func(int) { e.note("connected") },
			skip:      func(err error) { e.note("unreadable: " + err.Error()) },
			now:       time.Now,
			receive: func(_ context.Context, kind string, payload []byte) (any, error) {
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

func (e *socketFixture) until(what string, happens func() bool) {
	e.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !happens() {
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			e.t.Fatalf("still waiting until %s; recorded %q", what, e.recorded)
		}
	}
}

func (e *socketFixture) ended(end <-chan error) error {
	e.t.Helper()
	select {
	case err := <-end:
		return err
	case <-e.ctx.Done():
		e.t.Fatal("listenSocket did not return")
		return nil
	}
}

func TestListenSocket_DeliversAndAcknowledges(t *testing.T) {
	e := newSocketFixture(t)
	end, stop := e.listen()
	e.until("it is connected", func() bool { return e.count("connected") == 1 })
	alice := e.server.User("Alice", "alice")
	team := e.server.Channel("team", alice)
	team.Say(alice, "hello")
	team.Command(alice, "/arizuko", "new")
	if err := e.server.WaitConfirmed(e.ctx); err != nil {
		t.Fatal(err)
	}
	if e.count(eventRequest) != 1 || e.count(commandRequest) != 1 {
		t.Errorf("recorded %q", e.recorded)
	}
	stop()
	if err := e.ended(end); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// Invalid frames are skipped, or acknowledged, and the connection goes on.
func TestListenSocket_InvalidFrames(t *testing.T) {
	e := newSocketFixture(t)
	e.listen()
	e.until("it is connected", func() bool { return e.count("connected") == 1 })
	for _, frame := range []string{
		`{`, // which the library drops
		`{x`, `[]`, `7`, `"x"`, `{"type":7}`, `{"type":"new"}`, `{"type":"new","envelope_id":"e1","payload":{}}`,
		`{"type":"events_api","envelope_id":"e2"}`, `{"type":"slash_commands","envelope_id":"e3","payload":[]}`,
	} {
		e.server.InjectFrame(frame)
	}
	e.until("all are received or skipped", func() bool {
		return e.count("unreadable")+e.count("new")+e.count(eventRequest)+e.count(commandRequest) == 9
	})
	e.until("those with an id are acknowledged", func() bool {
		var ids []string
		for _, a := range e.server.Acks() {
			ids = append(ids, a.Envelope)
		}
		return slices.Equal(ids, []string{"e1", "e2", "e3"})
	})
	if e.count("connected") != 1 {
		t.Errorf("recorded %q", e.recorded)
	}
}

// Slack first replaces a connection, which is no error, and then ends each one at once.
func TestListenSocket_Reconnects(t *testing.T) {
	e := newSocketFixture(t)
	end, _ := e.listen()
	e.until("it is connected", func() bool { return e.count("connected") == 1 })
	e.server.Disconnect("refresh_requested")
	e.until("it is connected again", func() bool { return e.count("connected") == 2 })
	e.until("the former connection is gone", func() bool { return e.server.Sockets() == 1 })
	for n := 3; ; n++ {
		e.server.DropSockets()
		e.until("it is connected or over", func() bool { return e.count("connected") == n || len(end) > 0 })
		if len(end) > 0 {
			break
		}
	}
	if err := e.ended(end); err == nil || !strings.Contains(err.Error(), "at once") || e.count("connected") > 3 {
		t.Errorf("ended with %v after %q", err, e.recorded)
	}
}

func TestListenSocket_Refused_Fails(t *testing.T) {
	for word, prepare := range map[string]func(*fake.Server){
		"invalid_auth":            func(s *fake.Server) { s.Revoke(s.AppToken(), "invalid_auth") },
		"socket_mode_not_enabled": func(s *fake.Server) { s.SetSocketMode(false) },
		"internal_error": func(s *fake.Server) {
			s.InjectFault(fake.Fault{Method: "apps.connections.open", Error: "internal_error"})
		},
		"/link/ answers the handshake of a websocket with 503": func(s *fake.Server) {
			s.InjectFault(fake.Fault{Method: "socket", Status: 503, Times: 2})
		},
	} {
		e := newSocketFixture(t)
		prepare(e.server)
		end, _ := e.listen()
		if err := e.ended(end); err == nil || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "ticket=") {
			t.Errorf("%s: ended with %v", word, err)
		}
	}
}

// Slack sends the event again on the next connection.
func TestListenSocket_ReceiveFails_DoesNotAcknowledge(t *testing.T) {
	e := newSocketFixture(t)
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

// Acknowledgements wait for a connection. While Slack refuses one for long, the library's own events are behind the
// requests that wait: it must not be waited for without end.
func TestLink_AcknowledgementsWithoutConnection_EndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &link{client: socketmode.New(slack.New("token")), handler: socketHandler{
			receive: func(context.Context, string, []byte) (any, error) { return nil, nil },
		}}
		began := time.Now()
		for n := range 100 {
			err := l.on(t.Context(), socketmode.Event{Type: socketmode.EventTypeEventsAPI,
				Request: &socketmode.Request{Type: eventRequest, EnvelopeID: fmt.Sprint(n)}})
			if err == nil {
				continue
			}
			if waited := time.Since(began); waited != adapter.ConnectTimeout || !strings.Contains(err.Error(), "acknowledge") {
				t.Errorf("request %d: %v after %v", n, err, waited)
			}
			return
		}
		t.Error("all are acknowledged without a connection")
	})
}
