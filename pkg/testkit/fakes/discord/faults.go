package discord

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// The faults of the gateway. Each applies to all sessions, or to all open connections.

// each calls do for all sessions, under the lock.
func (s *Server) each(do func(*session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.gateway.sessions)) {
		do(s.gateway.sessions[id])
	}
	s.Notify()
}

// eachOpen calls do for all open connections, under the lock.
func (s *Server) eachOpen(do func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.gateway.conns {
		do(c)
	}
	s.Notify()
}

// Disconnect breaks the connections without a close frame. Sessions can be resumed.
func (s *Server) Disconnect() { s.eachOpen(func(c *conn) { c.drop() }) }

// CloseGateway closes the connections with one of Discord's codes.
func (s *Server) CloseGateway(code int, reason string) {
	s.eachOpen(func(c *conn) { c.close(code, reason) })
}

// Revoke invalidates the bot's token, as a reset in the developer portal does, and closes its
// connections; or makes it valid again.
func (s *Server) Revoke(revoked bool) {
	s.revoked.Store(revoked)
	if revoked {
		s.CloseGateway(CloseAuthenticationFailed, "Authentication failed.")
	}
}

// RequestReconnect asks clients to reconnect and resume.
func (s *Server) RequestReconnect() { s.eachOpen(func(c *conn) { c.send(opReconnect, nil) }) }

// ReconnectNext answers the next n connections with the request to reconnect, instead of Hello.
func (s *Server) ReconnectNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway.moves = n
}

// InvalidateSessions sends Invalid Session to the clients, which then resume or identify, on the same connection or
// another one. Sessions that are not resumable are dropped.
func (s *Server) InvalidateSessions(resumable bool) {
	s.eachOpen(func(c *conn) {
		c.send(opInvalidSession, resumable)
		n := c.session
		if n == nil {
			return
		}
		n.conn, c.session = nil, nil
		if !resumable {
			delete(s.gateway.sessions, n.id)
		}
	})
}

// ForgetSessions drops the sessions without a connection: they cannot be resumed.
func (s *Server) ForgetSessions() {
	s.each(func(n *session) {
		if n.conn == nil {
			delete(s.gateway.sessions, n.id)
		}
	})
}

// FreezeConnections makes the open connections send nothing more, not even heartbeat ACKs. The
// events since then are replayed at a resume.
func (s *Server) FreezeConnections() { s.eachOpen(func(c *conn) { c.frozen = true }) }

// Inject sends an event with the given JSON as data, which may be malformed:
//
//	s.Inject("MESSAGE_CREATE", `"not an object"`)
func (s *Server) Inject(event, data string) {
	if !json.Valid([]byte(data)) {
		panic("discord: not JSON: " + data) // InjectFrame sends any text
	}
	s.each(func(n *session) { s.dispatch(n, event, json.RawMessage(data)) })
}

// InjectFrame sends a frame with any text.
func (s *Server) InjectFrame(text string) {
	s.eachOpen(func(c *conn) { c.queue(frame{body: []byte(text)}) })
}

// Gateway counts the actions of clients of the gateway.
func (s *Server) Gateway() GatewayStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gateway.stats
}

// Listening reports whether a client is connected and receives events.
func (s *Server) Listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.gateway.conns, func(c *conn) bool { return c.session != nil && !c.frozen })
}

// Fault makes calls fail. Without Status, Drop and Body it only delays them.
type Fault struct {
	Route string // such as CreateMessage; "" is all but Connect and Download
	Times int    // how many calls; 0 is one, negative is until ClearFaults
	After bool   // the call is carried out; only its answer fails

	Delay      time.Duration   // before the call is carried out, or After it
	Held       <-chan struct{} // the call is not carried out before it is closed
	Drop       bool            // the connection is closed without an answer
	Body       string          // the answer, with Status or 200
	Status     int             // an error answer; without Code a page of HTML, as of the proxy
	Code       int             // Discord's own code of an error; with status 429 it is about one message, without headers
	Message    string          // of Code
	RetryAfter time.Duration   // Status is 429 then; with Code it may be left out
	Global     bool            // with RetryAfter: the global limit
}

// prepare completes an injected fault, and returns how many calls it is for.
func (f *Fault) prepare() (times int) {
	if f.RetryAfter > 0 {
		f.Status = http.StatusTooManyRequests
	}
	return f.Times
}

func (f *Fault) matches(route string) bool {
	if f.Route == "" {
		return route != Connect && route != Download
	}
	return f.Route == route
}

// refuses reports whether the caller gets no proper answer.
func (f *Fault) refuses() bool { return f.Drop || f.Body != "" || f.Status != 0 }

// answer answers in place of the call, and reports whether it did.
func (f *Fault) answer(w http.ResponseWriter) bool {
	switch {
	case f.Drop:
		fakeserver.Abort()
	case f.Body != "":
		fakeserver.WriteRaw(w, f.Status, f.Body)
	case f.RetryAfter > 0 && f.Code == 0:
		writeError(w, limited(f.RetryAfter, f.Global))
	case f.Code != 0 || f.Status == http.StatusUnauthorized:
		writeError(w, &apiError{status: f.Status, code: f.Code, message: cmp.Or(f.Message, http.StatusText(f.Status)),
			retryAfter: f.RetryAfter})
	case f.Status != 0:
		writeProxyPage(w, f.Status, http.StatusText(f.Status))
	default:
		return false
	}
	return true
}
