package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
)

const (
	// replacedFor is how long Slack may count a connection that slakd has replaced: Slack closes some only after the
	// next one is open, and notices a broken one later.
	replacedFor = 30 * time.Second
	// recountDelay is when connections are counted again after a greeting that left doubt, and recountInterval how
	// often while another program is connected.
	recountDelay    = replacedFor + 15*time.Second
	recountInterval = 5 * time.Minute
	// maxGreeting bounds a frame that is read only for its number, in bytes.
	maxGreeting = 1 << 20
)

// sockets tells slakd's own connections from those that Slack counts for the app. It is safe for concurrent use.
type sockets struct {
	mu      sync.Mutex
	greeted []time.Time // the last connections
	before  bool        // there was one
}

// greet judges the number of connections in the greeting of a new one: how many are of other programs, and whether that
// is sure.
func (s *sockets) greet(open int, now time.Time) (others int, sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	replaced := s.recent(now)
	if s.before {
		replaced = max(replaced, 1)
	}
	s.before, s.greeted = true, append(s.greeted, now)
	return judge(open, 1, replaced)
}

// counted is greet for a connection that was opened beside the live one to be counted.
func (s *sockets) counted(open int, now time.Time) (others int, sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return judge(open, 2, s.recent(now))
}

// recent is how many connections were greeted in the last replacedFor.
func (s *sockets) recent(now time.Time) int {
	s.greeted = slices.DeleteFunc(s.greeted, func(at time.Time) bool { return now.Sub(at) > replacedFor })
	return len(s.greeted)
}

// judge compares Slack's count with slakd's own connections, and those of its own that Slack may still count.
func judge(open, own, replaced int) (others int, sure bool) {
	if open > own+replaced {
		return open - own - replaced, true
	}
	return 0, open <= own
}

// Competitors is the advice about other connections of the app.
func Competitors(others int) string {
	if others == 1 {
		return "another program is connected with this app token: stop it, half of the events go there"
	}
	return fmt.Sprintf("%d other programs are connected with this app token: stop them, most of the events go there",
		others)
}

// greeted notes the greeting of a connection. It reports whether connections are to be counted again: an old one may
// have been among them, or the other program may be stopped.
func (l *Listener) greeted(s *adapter.Shell, open int) (again bool) {
	others, sure := l.sockets.greet(open, l.Now())
	if sure {
		s.Compete(others, Competitors(others))
	}
	return !sure || others > 0
}

// recount counts the app's connections after each greeting that asks for it, until no other program is connected.
func (l *Listener) recount(ctx context.Context, s *adapter.Shell, asked <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		for wait, others, sure := recountDelay, 1, true; ctx.Err() == nil && (others > 0 || !sure); {
			adapter.Pause(ctx, wait)
			open, err := countConnections(ctx, l.API.Client, l.Network)
			if wait = recountInterval; err != nil {
				continue
			}
			if others, sure = l.sockets.counted(open, l.Now()); !sure {
				wait = recountDelay
				continue
			}
			s.Compete(others, Competitors(others))
			s.Connected()
		}
	}
}

// countConnections is CountConnections at an address that it asks Slack for.
func countConnections(ctx context.Context, api *slack.Client, n adapter.Network) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, adapter.ConnectTimeout)
	defer cancel()
	_, address, err := api.StartSocketModeContext(ctx)
	if err != nil {
		return 0, err
	}
	return CountConnections(ctx, address, n)
}

// CountConnections opens a connection of the app only for the number in Slack's greeting, that one included. An event
// that Slack sends on it meanwhile is not acknowledged: it comes again on another one.
func CountConnections(ctx context.Context, address string, n adapter.Network) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, adapter.ConnectTimeout)
	defer cancel()
	conn, err := dialSocket(ctx, address, n)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	conn.SetReadLimit(maxGreeting)
	for {
		var frame struct {
			Type        string `json:"type"`
			Connections int    `json:"num_connections"`
		}
		err := conn.ReadJSON(&frame)
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, fmt.Errorf("no greeting came for %s", adapter.ConnectTimeout)
		case err != nil:
			return 0, err
		case frame.Type == "hello":
			bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			return frame.Connections, conn.WriteControl(websocket.CloseMessage, bye,
				time.Now().Add(adapter.ConnectTimeout))
		}
	}
}

// dialSocket opens a connection at an address. Its error names the host that refuses, and not the ticket in the
// address.
func dialSocket(ctx context.Context, address string, n adapter.Network) (*websocket.Conn, error) {
	conn, res, err := dialer(ctx, n).DialContext(ctx, address, nil)
	if err != nil {
		host, _, _ := strings.Cut(address, "?")
		return nil, adapter.HandshakeError(host, res, err)
	}
	return conn, nil
}

// handshakeProblem says why a handshake was refused: the library does not, so another one is made.
func handshakeProblem(ctx context.Context, api *slack.Client, n adapter.Network) error {
	ctx, cancel := context.WithTimeout(ctx, adapter.ConnectTimeout)
	defer cancel()
	_, address, err := api.StartSocketModeContext(ctx)
	if err != nil {
		return err
	}
	conn, err := dialSocket(ctx, address, n)
	if err != nil {
		return err
	}
	_ = conn.Close()
	return websocket.ErrBadHandshake
}
