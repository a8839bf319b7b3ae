package discord

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// The opcodes of the gateway.
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opPresence       = 3
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opHeartbeatAck   = 11
)

// The codes with which Discord closes a connection.
const (
	CloseUnknownError         = 4000
	CloseUnknownOpcode        = 4001
	CloseDecodeError          = 4002
	CloseNotAuthenticated     = 4003
	CloseAuthenticationFailed = 4004
	CloseAlreadyAuthenticated = 4005
	CloseInvalidSequence      = 4007
	CloseRateLimited          = 4008
	CloseSessionTimedOut      = 4009
	CloseInvalidVersion       = 4012
	CloseInvalidIntents       = 4013
	CloseDisallowedIntents    = 4014
)

// maxFrame is the documented limit of a client's payload, in bytes.
const maxFrame = 4096

// maxFrames is the documented number of payloads that a client may send in frameWindow.
const (
	maxFrames   = 120
	frameWindow = time.Minute
)

// lateBeats is how many intervals without a heartbeat close a connection.
const lateBeats = 1.5

// frame is a payload to write, or the close of the connection.
type frame struct {
	body   []byte
	zip    bool
	code   int // of a close; 0 for a payload
	reason string
}

// conn is one connection of the gateway. The server's lock guards it.
type conn struct {
	s       *Server
	ws      *websocket.Conn
	host    string
	session *session // nil before IDENTIFY or RESUME
	out     []frame
	wake    chan struct{}     // something was added to out
	frames  fakeserver.Window // when the client sent payloads
	frozen  bool              // it stays open, and nothing is sent on it
	cancel  context.CancelFunc
}

// connect serves a connection of the gateway.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	f := s.NextFault(Connect)
	s.Hold(r.Context(), f.Delay)
	if f.answer(w) {
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = ws.CloseNow() }()
	ctx, cancel := context.WithCancel(s.ConnContext()) // the request's context ends at the upgrade
	defer cancel()
	c := &conn{s: s, ws: ws, host: r.Host, wake: make(chan struct{}, 1), cancel: cancel}
	if !s.admit(ctx, c) {
		return
	}
	defer s.open.Done()
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write(ctx)
	}()
	c.read(ctx, r)
	cancel()
	<-written
}

// admit sends Hello on a new connection, unless it has ended.
func (s *Server) admit(ctx context.Context, c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	s.open.Add(1)
	s.gateway.conns = append(s.gateway.conns, c)
	s.gateway.stats.Connections++
	if s.gateway.moves > 0 {
		s.gateway.moves--
		c.send(opReconnect, nil)
		return true
	}
	c.send(opHello, map[string]any{"heartbeat_interval": s.heartbeat.Milliseconds()})
	return true
}

// send queues a payload other than an event. The lock is held.
func (c *conn) send(op int, d any) { c.queue(frame{body: payload(op, d, 0, "")}) }

func (c *conn) queue(f frame) {
	if c.frozen {
		return
	}
	c.out = append(c.out, f)
	select {
	case c.wake <- struct{}{}:
	default: // the writer is awake already
	}
}

// close queues the close of the connection. The lock is held.
func (c *conn) close(code int, reason string) { c.queue(frame{code: code, reason: reason}) }

// drop breaks the connection without a close frame. The lock is held.
func (c *conn) drop() { c.cancel() }

// payload is the envelope of all messages of the gateway.
func payload(op int, d any, sequence int64, event string) []byte {
	var s, t any
	if op == opDispatch {
		s, t = sequence, event
	}
	body, err := json.Marshal(map[string]any{"op": op, "d": d, "s": s, "t": t})
	if err != nil {
		panic(fmt.Sprintf("discord: encode event: %v", err)) // the fake's own types
	}
	return body
}

// write sends queued frames until the connection ends.
func (c *conn) write(ctx context.Context) {
	defer func() { _ = c.ws.CloseNow() }() // it ends read
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
		for _, f := range c.take() {
			if f.code != 0 {
				_ = c.ws.Close(websocket.StatusCode(f.code), f.reason) // the connection ends either way
				return
			}
			kind, body := websocket.MessageText, f.body
			if f.zip {
				kind, body = websocket.MessageBinary, deflated(f.body)
			}
			if c.ws.Write(ctx, kind, body) != nil {
				return
			}
		}
	}
}

func (c *conn) take() []frame {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	out := c.out
	c.out = nil
	return out
}

// deflated is a compressed payload.
func deflated(body []byte) []byte {
	var buffer bytes.Buffer
	z := zlib.NewWriter(&buffer)
	_, _ = z.Write(body) // a buffer does not fail
	_ = z.Close()
	return buffer.Bytes()
}

// read handles the client's payloads until the connection ends.
func (c *conn) read(ctx context.Context, r *http.Request) {
	c.ws.SetReadLimit(1 << 20)
	late := time.AfterFunc(c.s.late, func() {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.close(CloseSessionTimedOut, "Session timed out.")
	})
	defer late.Stop()
	if q := r.URL.Query(); q.Get("v") != "9" && q.Get("v") != "10" || q.Get("compress") != "" ||
		cmp.Or(q.Get("encoding"), "json") != "json" {
		c.s.mu.Lock()
		c.close(CloseInvalidVersion, "Invalid API version.") // the fake supports only plain JSON
		c.s.mu.Unlock()
	}
	for {
		_, body, err := c.ws.Read(ctx)
		if err != nil {
			c.leave(websocket.CloseStatus(err))
			return
		}
		if c.handle(body) == opHeartbeat {
			late.Reset(c.s.late)
		}
	}
}

// leave drops a connection. A close frame of the client ends its session; otherwise the session can
// be resumed.
func (c *conn) leave(code websocket.StatusCode) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.gateway.forget(c)
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
		if code == websocket.StatusNormalClosure || code == websocket.StatusGoingAway {
			delete(c.s.gateway.sessions, c.session.id)
		}
	}
	c.s.Notify()
}

// handle handles one payload of the client, and returns its opcode.
func (c *conn) handle(body []byte) int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	defer c.s.Notify()
	var p struct {
		Op *int            `json:"op"`
		D  json.RawMessage `json:"d"`
	}
	if c.tooMany() {
		c.close(CloseRateLimited, "Rate limited.")
		return -1
	}
	if len(body) > maxFrame || json.Unmarshal(body, &p) != nil || p.Op == nil {
		c.close(CloseDecodeError, "Error while decoding payload.")
		return -1
	}
	switch *p.Op {
	case opHeartbeat:
		c.beat(p.D)
	case opIdentify:
		c.identify(p.D)
	case opResume:
		c.resume(p.D)
	case opPresence:
		if c.session == nil {
			c.close(CloseNotAuthenticated, "Not authenticated.")
		}
	default:
		c.close(CloseUnknownOpcode, "Unknown opcode.")
	}
	return *p.Op
}

// tooMany reports whether a client has sent more payloads than it may.
func (c *conn) tooMany() bool {
	now := c.s.clock()
	c.frames = append(c.frames.Since(frameWindow, now), now)
	return c.s.rates != nil && len(c.frames) > maxFrames
}

func (c *conn) beat(d json.RawMessage) {
	c.s.gateway.stats.Heartbeats++
	var sequence int64
	if json.Unmarshal(d, &sequence) == nil && c.session != nil {
		c.session.confirmed = sequence
	}
	c.send(opHeartbeatAck, nil)
}
