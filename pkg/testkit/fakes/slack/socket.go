package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	socketPath = "/link/"
	maxSockets = 10
	ticketLife = 30 * time.Second
	// refreshGrace is how long a connection that was asked to go lives on.
	refreshGrace = 10 * time.Second
	lifetime     = 18_060 // seconds, as hello tells it
	maxFrame     = 1 << 20
)

// link is Socket Mode. The server's lock guards it, but for running.
type link struct {
	off     bool
	tickets map[string]time.Time // until when each is good
	sockets []*socket
	turn    int
	opened  int // connections since the beginning
	running sync.WaitGroup
}

func newLink() link { return link{tickets: map[string]time.Time{}} }

// socket is one connection. What it is to write stands in out.
type socket struct {
	mu      sync.Mutex
	out     [][]byte
	wake    chan struct{} // of one place
	last    bool          // nothing is to come after what stands in out
	cancel  context.CancelFunc
	leaving bool // nothing new is given to it; the server's lock guards this one
}

func (c *socket) send(frame []byte) {
	c.mu.Lock()
	c.out = append(c.out, frame)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// sendLast is send, and then the connection is closed.
func (c *socket) sendLast(frame []byte) {
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	c.send(frame)
}

func (c *socket) take() (frames [][]byte, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	frames, c.out = c.out, nil
	return frames, c.last
}

// next is the connection whose turn it is, nil without one.
func (l *link) next() *socket {
	for range l.sockets {
		l.turn = (l.turn + 1) % len(l.sockets)
		if c := l.sockets[l.turn]; !c.leaving {
			return c
		}
	}
	return nil
}

// breakSockets breaks every connection. What was out on them waits for the next at once: a
// story goes on before the connections notice.
func (s *Server) breakSockets() {
	all := s.link.sockets
	s.link.sockets = nil
	for _, c := range all {
		s.broken(c)
		c.cancel()
	}
	s.Notify()
}

func (s *Server) openConnection(params) (any, error) {
	if s.link.off || s.o.EventsURL != "" {
		return nil, word("socket_mode_not_enabled")
	}
	ticket := s.id("")
	s.link.tickets[ticket] = time.Now().Add(ticketLife)
	return struct {
		OK  bool   `json:"ok"`
		URL string `json:"url"`
	}{true, "ws" + strings.TrimPrefix(s.Base(), "http") + socketPath + "?ticket=" + ticket + "&app_id=" + s.me.AppID}, nil
}

// socket answers the address that apps.connections.open gave out, which is good once.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	f := s.NextFault("socket")
	s.Hold(r.Context(), f.Delay)
	if f.answer(w) {
		return
	}
	life := s.ConnContext()
	c, good := s.redeem(life, r.URL.Query().Get("ticket"))
	if !good {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	defer s.link.running.Done()
	// Clients say where they come from as they like.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	conn.SetReadLimit(maxFrame)
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	c.cancel = cancel
	s.join(c)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer cancel()
		s.write(ctx, conn, c)
	})
	s.read(ctx, conn)
	cancel()
	writing.Wait()
	_ = conn.CloseNow()
	s.leave(c)
}

// redeem takes a ticket. The connection made counts as running.
func (s *Server) redeem(life context.Context, ticket string) (*socket, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, known := s.link.tickets[ticket]
	delete(s.link.tickets, ticket)
	if !known || time.Now().After(until) || s.link.off || life.Err() != nil {
		return nil, false
	}
	s.link.running.Add(1)
	return &socket{wake: make(chan struct{}, 1)}, true
}

// join greets a connection and gives it what waits. One too many is told so and let go.
func (s *Server) join(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.link.sockets) >= maxSockets {
		c.leaving = true
		c.sendLast(disconnectFrame("too_many_websockets"))
		return
	}
	s.link.sockets = append(s.link.sockets, c)
	s.link.opened++
	c.send(encoded(map[string]any{
		"type": "hello", "num_connections": len(s.link.sockets), "connection_info": map[string]string{"app_id": s.me.AppID},
		"debug_info": map[string]any{
			"host": fmt.Sprintf("applink-fake-%d", s.link.opened), "build_number": 1, "approximate_connection_time": lifetime,
		},
	}))
	s.dispatch()
	s.Notify()
}

func (s *Server) leave(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link.sockets = slices.DeleteFunc(s.link.sockets, func(other *socket) bool { return other == c })
	s.broken(c)
	s.dispatch()
	s.Notify()
}

// read takes the app's answers until the connection is gone.
func (s *Server) read(ctx context.Context, conn *websocket.Conn) {
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			return
		}
		var answer struct {
			Envelope string          `json:"envelope_id"`
			Payload  json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(frame, &answer) == nil && answer.Envelope != "" {
			s.answered(answer.Envelope, answer.Payload)
		}
	}
}

// write sends what there is to send, and a ping every while, until the connection is gone. A
// ping that is not answered ends it.
func (s *Server) write(ctx context.Context, conn *websocket.Conn, c *socket) {
	ticker := time.NewTicker(s.o.Ping)
	defer ticker.Stop()
	for {
		frames, last := c.take()
		for _, frame := range frames {
			if conn.Write(ctx, websocket.MessageText, frame) != nil {
				return
			}
		}
		if last {
			_ = conn.Close(websocket.StatusNormalClosure, "") // gone either way
			return
		}
		select {
		case <-c.wake:
		case <-ticker.C:
			late, cancel := context.WithTimeout(ctx, s.o.Ping)
			err := conn.Ping(late)
			cancel()
			if err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func disconnectFrame(reason string) []byte {
	return encoded(map[string]any{
		"type": "disconnect", "reason": reason, "debug_info": map[string]string{"host": "applink-fake"},
	})
}

// Disconnect tells every connection to go, for one of Slack's reasons. After "warning" it
// stays; after "refresh_requested" nothing new is sent on it, and it is cut after ten seconds;
// "link_disabled" closes it and has Socket Mode be off, until EnableSockets.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.link.sockets {
		switch reason {
		case "link_disabled":
			c.leaving, s.link.off = true, true
			c.sendLast(disconnectFrame(reason))
		case "refresh_requested":
			c.leaving = true
			c.send(disconnectFrame(reason))
			time.AfterFunc(refreshGrace, c.cancel) // nothing to whoever went by himself
		default:
			c.send(disconnectFrame(reason))
		}
	}
	s.Notify()
}

// SetSocketMode turns Socket Mode on or off in the app's settings.
func (s *Server) SetSocketMode(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link.off = !on
}

// DropSockets breaks every connection without a word, and returns how many there were.
func (s *Server) DropSockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.link.sockets)
	s.breakSockets()
	return n
}

// InjectFrame sends a text on every connection, however wrong.
func (s *Server) InjectFrame(frame string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.link.sockets {
		c.send([]byte(frame))
	}
}

// Sockets is how many connections there are.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.link.sockets)
}

// OpenedSockets is how many connections there have been.
func (s *Server) OpenedSockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.opened
}

// WaitConnected waits until there is a connection that events are sent on.
func (s *Server) WaitConnected(ctx context.Context) error {
	return s.Until(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.link.sockets, func(c *socket) bool { return !c.leaving })
	})
}
