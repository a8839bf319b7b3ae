package discord

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Call is one call of the API, as it came.
type Call struct {
	At       time.Time
	Route    string // CreateMessage and the like
	Path     string // without the version in front
	Body     json.RawMessage
	Accepted bool // it was carried out, whatever the caller was told
	Status   int  // what the caller was told; 0 for a broken connection

	ChannelID string // of a thread, where it went to one
	MessageID string // of the message that was made, or acted upon
	Text      string
	ReplyTo   string // the message answered
	Nonce     string
	Repeated  bool // the nonce was known: no message was made
	Files     []Upload
	Emoji     string
	Pings     []string // the mentions in it that notify somebody, as they are written
	Message   *Message // what was made or edited
	Ephemeral bool     // an answer to an interaction that only its user sees
}

// recorded is the record of a call.
func (s *Server) recorded(q *request, result any, err error, f Fault) Call {
	c := q.call
	c.At, c.Accepted, c.Status = s.clock(), err == nil, seen(result, err, f)
	return c
}

// seen is the status that a caller gets.
func seen(result any, err error, f Fault) int {
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

// acts reports whether a call was carried out, for the first time, and did more than look at
// something.
func (c *Call) acts() bool { return c.Accepted && !c.Repeated && !strings.HasPrefix(c.Route, "GET ") }

// sends reports whether a call made a message.
func (c *Call) sends() bool { return c.Route == CreateMessage }

// Answers is for Wait: a message of the bot in a place.
func Answers(p Place) func(Call) bool {
	return func(c Call) bool { return c.sends() && c.ChannelID == p.ChannelID }
}

// Typing is when the bot said that it types in the place, oldest first.
func (p Place) Typing() []time.Time {
	var times []time.Time
	for _, c := range p.s.Sent() {
		if c.Route == TriggerTyping && c.ChannelID == p.ChannelID {
			times = append(times, c.At)
		}
	}
	return times
}

// WaitListening waits until somebody listens to the gateway.
func (s *Server) WaitListening(ctx context.Context) error { return s.Until(ctx, s.Listening) }

// WaitConfirmed waits until heartbeats have named the last event of every session.
func (s *Server) WaitConfirmed(ctx context.Context) error {
	return s.Until(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, n := range s.gateway.sessions {
			if n.confirmed < n.sequence {
				return false
			}
		}
		return true
	})
}
