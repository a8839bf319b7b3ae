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
	// refreshGrace is how long a connection stays open after disconnect.
	refreshGrace = 10 * time.Second
	lifetime     = 18_060 // seconds, in hello
	maxFrame     = 1 << 20
	// pingEvery is also how long a ping waits for its answer.
	pingEvery = 5 * time.Second
)

// link is the state of Socket Mode. The server's lock guards all but running.
type link struct {
	off     bool
	tickets map[string]time.Time // expiry by ticket
	sockets []*socket
	turn    int
	opened  int // connections ever opened
	running sync.WaitGroup
}

func newLink() link { return link{tickets: map[string]time.Time{}} }

// socket is one connection.
type socket struct {
	mu      sync.Mutex
	out     [][]byte
	wake    chan struct{} // has room for one signal
	cancel  context.CancelFunc
	leaving bool // it gets no new deliveries; the server's lock guards it
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

func (c *socket) take() (frames [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	frames, c.out = c.out, nil
	return frames
}

// next is the connection for the next delivery; nil if none is open.
func (l *link) next() *socket {
	for range l.sockets {
		l.turn = (l.turn + 1) % len(l.sockets)
		if c := l.sockets[l.turn]; !c.leaving {
			return c
		}
	}
	return nil
}

// breakSockets breaks every connection, and requeues at once the deliveries that were sent on them.
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
		return nil, errorCode("socket_mode_not_enabled")
	}
	ticket := s.id("")
	s.link.tickets[ticket] = time.Now().Add(ticketLife)
	return fields{"url": "ws" + strings.TrimPrefix(s.Base(), "http") + socketPath + "?ticket=" + ticket}.ok(), nil
}

// socket answers the URL of apps.connections.open, which can be used once.
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
	// Clients may send any Origin.
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

// redeem uses up a ticket, unless there are too many connections. The connection counts as running.
func (s *Server) redeem(life context.Context, ticket string) (*socket, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, known := s.link.tickets[ticket]
	delete(s.link.tickets, ticket)
	if !known || time.Now().After(until) || s.link.off || life.Err() != nil || len(s.link.sockets) >= maxSockets {
		return nil, false
	}
	s.link.running.Add(1)
	return &socket{wake: make(chan struct{}, 1)}, true
}

// join sends hello on a connection, and the events that are waiting.
func (s *Server) join(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link.sockets = append(s.link.sockets, c)
	s.link.opened++
	c.send(encoded(fields{
		"type": "hello", "num_connections": len(s.link.sockets),
		"connection_info": map[string]string{"app_id": s.me.AppID},
		"debug_info": fields{
			"host": fmt.Sprintf("applink-fake-%d", s.link.opened), "build_number": 1,
			"approximate_connection_time": lifetime,
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

// read handles the app's answers until the connection ends.
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

// write sends queued frames and pings until the connection ends. An unanswered ping ends it.
func (s *Server) write(ctx context.Context, conn *websocket.Conn, c *socket) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		for _, frame := range c.take() {
			if conn.Write(ctx, websocket.MessageText, frame) != nil {
				return
			}
		}
		select {
		case <-c.wake:
		case <-ticker.C:
			late, cancel := context.WithTimeout(ctx, pingEvery)
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

// Disconnect sends disconnect on every connection, with a reason such as "refresh_requested". The connections get
// nothing new, and are closed after ten seconds.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.link.sockets {
		c.leaving = true
		c.send(encoded(fields{
			"type": "disconnect", "reason": reason, "debug_info": map[string]string{"host": "applink-fake"},
		}))
		time.AfterFunc(refreshGrace, c.cancel) // no effect if it is closed already
	}
	s.Notify()
}

// SetSocketMode turns Socket Mode on or off in the app's settings.
func (s *Server) SetSocketMode(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link.off = !on
}

// DropSockets breaks every connection without a close frame, and returns how many there were.
func (s *Server) DropSockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.link.sockets)
	s.breakSockets()
	return n
}

// InjectFrame sends any text on every connection.
func (s *Server) InjectFrame(frame string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.link.sockets {
		c.send([]byte(frame))
	}
}

// Sockets is how many connections are open.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.link.sockets)
}

// OpenedSockets is how many connections were ever opened.
func (s *Server) OpenedSockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.opened
}

// WaitConnected waits until a connection is open.
func (s *Server) WaitConnected(ctx context.Context) error { return s.Until(ctx, s.Connected) }

// Connected reports whether a connection is open.
func (s *Server) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.link.sockets, func(c *socket) bool { return !c.leaving })
}
