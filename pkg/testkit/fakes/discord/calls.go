package discord

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Call is one call of the API.
type Call struct {
	At       time.Time
	Route    string // such as CreateMessage
	Path     string // without the version
	Body     json.RawMessage
	Accepted bool // it was carried out, even if its answer failed
	Status   int  // of the answer; 0 for a broken connection

	ChannelID string // or a thread
	MessageID string // the message that was sent or changed
	Text      string
	ReplyTo   string // the message to which it replies
	Nonce     string
	Repeated  bool // the nonce was known: no message was sent
	Files     []Upload
	Emoji     string
	Pings     []string // the mentions in it that notify users, as written
	Message   *Message // sent or edited
	Ephemeral bool     // an answer to an interaction that only its user sees
}

// recorded is a call as it is recorded.
func (s *Server) recorded(q *request, result any, err error, f Fault) Call {
	c := q.call
	c.At, c.Accepted, c.Status = s.clock(), err == nil, answerStatus(result, err, f)
	return c
}

// answerStatus is the status that the caller gets.
func answerStatus(result any, err error, f Fault) int {
	refused, api := errors.AsType[*apiError](err)
	switch {
	case f.Drop:
		return 0
	case f.Status != 0:
		return f.Status
	case f.Body != "":
		return http.StatusOK
	case api:
		return refused.status
	case err != nil:
		return http.StatusInternalServerError
	case result == nil:
		return http.StatusNoContent
	}
	return http.StatusOK
}

// acts reports whether a call was carried out, for the first time, and did more than read.
func (c *Call) acts() bool { return c.Accepted && !c.Repeated && !strings.HasPrefix(c.Route, "GET ") }

// Typing is when the bot triggered the typing indicator in the place, oldest first.
func (p Place) Typing() []time.Time {
	var times []time.Time
	for _, c := range p.s.Sent() {
		if c.Route == TriggerTyping && c.ChannelID == p.ChannelID {
			times = append(times, c.At)
		}
	}
	return times
}

// WaitConfirmed waits until heartbeats have confirmed the last event of every session.
func (s *Server) WaitConfirmed(ctx context.Context) error {
	return s.Until(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, n := range s.gateway.sessions {
			if n.confirmed < n.sequence {
				return false
			}
		}
		return s.Held() == 0
	})
}
