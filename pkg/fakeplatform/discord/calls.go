package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
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

// record keeps a call that was not carried out.
func (s *Server) record(q *request, err error, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(q, nil, err, f)
	s.calls[len(s.calls)-1].Accepted = false
	s.happened()
}

// keep notes a call. The lock is held.
func (s *Server) keep(q *request, result any, err error, f Fault) {
	q.call.At, q.call.Accepted, q.call.Status = s.clock(), err == nil, seen(result, err, f)
	s.calls = append(s.calls, q.call)
}

// seen is the status that a caller gets.
func seen(result any, err error, f Fault) int {
	refused, api := isAPI(err)
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

// asks reports whether a call only looked at something.
func (c *Call) asks() bool { return strings.HasPrefix(c.Route, "GET ") }

// Calls are all calls with a good token, also those that were refused, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Sent is what the bot did: the calls that were carried out and changed something.
func (s *Server) Sent() []Call {
	return slices.DeleteFunc(s.Calls(), func(c Call) bool { return !c.Accepted || c.asks() || c.Repeated })
}

// Changed returns a channel that is closed when anything happens.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Until waits for a condition, which is looked at whenever something happens. The error is ctx's.
func (s *Server) Until(ctx context.Context, condition func() bool) error {
	for {
		changed := s.Changed()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Wait waits for the first thing the bot did, or has already done, that is like this.
func (s *Server) Wait(ctx context.Context, like func(Call) bool) (Call, error) {
	var found Call
	err := s.Until(ctx, func() bool {
		sent := s.Sent()
		i := slices.IndexFunc(sent, like)
		if i >= 0 {
			found = sent[i]
		}
		return i >= 0
	})
	return found, err
}

// WaitSent waits until the bot has sent n messages; it returns all.
func (s *Server) WaitSent(ctx context.Context, n int) ([]Call, error) {
	var sent []Call
	err := s.Until(ctx, func() bool {
		sent = slices.DeleteFunc(s.Sent(), func(c Call) bool { return !c.sends() })
		return len(sent) >= n
	})
	return sent, err
}

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
