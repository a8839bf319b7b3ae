package discord

import (
	"encoding/json"
	"maps"
	"slices"
)

// What goes wrong on the gateway, on demand. Each of these means every session, or every open
// connection.

// each does something with every session, under the lock.
func (s *Server) each(do func(*session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.gateway.sessions)) {
		do(s.gateway.sessions[id])
	}
	s.Notify()
}

// eachOpen does something with every open connection, under the lock.
func (s *Server) eachOpen(do func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.gateway.open() {
		do(c)
	}
	s.Notify()
}

// Disconnect breaks the connections, as a network does; sessions can be resumed.
func (s *Server) Disconnect() { s.eachOpen(func(c *conn) { c.drop() }) }

// CloseGateway closes the connections with one of Discord's codes.
func (s *Server) CloseGateway(code int, reason string) {
	s.eachOpen(func(c *conn) { c.close(code, reason) })
}

// Revoke makes the bot's token no longer good, as a reset in the developer portal does, and breaks
// what hangs on it; or makes it good again.
func (s *Server) Revoke(revoked bool) {
	s.revoked.Store(revoked)
	if revoked {
		s.CloseGateway(CloseAuthenticationFailed, "Authentication failed.")
	}
}

// RequestReconnect asks clients to reconnect and resume.
func (s *Server) RequestReconnect() { s.eachOpen(func(c *conn) { c.send(opReconnect, nil) }) }

// InvalidateSessions tells clients that their session is over. If it cannot be resumed it is
// forgotten.
func (s *Server) InvalidateSessions(resumable bool) {
	s.eachOpen(func(c *conn) {
		c.send(opInvalidSession, resumable)
		if n := c.session; n != nil && !resumable {
			delete(s.gateway.sessions, n.id)
			n.conn, c.session = nil, nil // it may identify again
		}
	})
}

// ForgetSessions forgets the sessions that nobody listens to: they cannot be resumed.
func (s *Server) ForgetSessions() {
	s.each(func(n *session) {
		if n.conn == nil {
			delete(s.gateway.sessions, n.id)
		}
	})
}

// FreezeConnections makes the open connections say nothing any more, not even that they heard a
// heartbeat. What happens meanwhile can be had by resuming.
func (s *Server) FreezeConnections() { s.eachOpen(func(c *conn) { c.deaf = true }) }

// RequestHeartbeat asks clients for a heartbeat at once.
func (s *Server) RequestHeartbeat() { s.eachOpen(func(c *conn) { c.send(opHeartbeat, nil) }) }

// DuplicateNext sends each of the next n events two times.
func (s *Server) DuplicateNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway.twice = n
}

// ReverseNext turns the order of the next two events around, n times over.
func (s *Server) ReverseNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway.reversed = n
}

// Redeliver sends the last n events once more, with their old sequence numbers.
func (s *Server) Redeliver(n int) {
	s.each(func(session *session) {
		if session.conn == nil {
			return
		}
		for _, e := range session.log[max(len(session.log)-n, 0):] {
			session.conn.queue(frame{body: e.body, zip: session.zip})
		}
	})
}

// Inject sends an event whose data is the given JSON, however wrong:
//
//	s.Inject("MESSAGE_CREATE", `"not an object"`)
func (s *Server) Inject(event, data string) {
	if !json.Valid([]byte(data)) {
		panic("discord: not JSON: " + data) // what is no JSON goes with Garble
	}
	s.each(func(n *session) { n.dispatch(event, json.RawMessage(data)) })
}

// InjectFrame sends a frame that is no payload at all.
func (s *Server) InjectFrame(text string) {
	s.eachOpen(func(c *conn) { c.queue(frame{body: []byte(text)}) })
}

// Gateway counts what clients of the gateway did.
func (s *Server) Gateway() GatewayStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gateway.stats
}

// Listening reports whether somebody is connected and gets events.
func (s *Server) Listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.gateway.conns, func(c *conn) bool { return c.session != nil && !c.deaf })
}
