package discord

import (
	"encoding/json"
	"maps"
	"slices"
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
	for _, c := range s.gateway.open() {
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

// RequestHeartbeat asks clients for a heartbeat at once.
func (s *Server) RequestHeartbeat() { s.eachOpen(func(c *conn) { c.send(opHeartbeat, nil) }) }

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

// Gateway counts what clients of the gateway did.
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
