package telegram

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Call is one call of a method. Calls of getUpdates are only counted.
type Call struct {
	At       time.Time
	Method   string
	Params   map[string]string // without the files
	Accepted bool              // it was carried out, even if its answer failed
	Status   int               // of the answer; 0 for a broken connection

	ChatID    int64
	ThreadID  int    // the requested topic, or that of the sent message
	MessageID int    // the message that was sent or changed
	Text      string // or the caption
	Entities  []Entity
	ReplyTo   int
	Files     []Upload
	Reactions []string  // emoji
	Action    string    // of sendChatAction
	Messages  []Message // sent or edited
}

// refused records a call that was not carried out.
func (s *Server) refused(m method, p params, err error, f Fault) {
	if m.poll == nil {
		s.Add(recorded(m, p, nil, err, f))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polled++
	s.Notify()
}

// recorded is a call as it is recorded.
func recorded(m method, p params, result any, err error, f Fault) Call {
	reply, _, _ := p.replyTo()
	c := Call{
		At: time.Now(), Method: m.name, Params: p.Clone(), Accepted: err == nil, Status: answerStatus(err, f),
		ChatID: p.int("chat_id", 0), ThreadID: int(p.int("message_thread_id", 0)),
		MessageID: int(p.int("message_id", 0)),
		Text:      p.str("text") + p.str("caption"), ReplyTo: reply, Action: p.str("action"),
	}
	for _, name := range []string{"entities", "caption_entities"} {
		if entities, err := p.entitiesOf(name); err == nil {
			c.Entities = append(c.Entities, entities...)
		}
	}
	var reactions []Reaction
	if _, err := p.json("reaction", &reactions); err == nil {
		for _, r := range reactions {
			c.Reactions = append(c.Reactions, r.Emoji)
		}
	}
	for name, u := range p.files {
		if u.Kind == "" {
			u.Kind = name
		}
		c.Files = append(c.Files, u)
	}
	slices.SortFunc(c.Files, func(a, b Upload) int { return strings.Compare(a.Name, b.Name) })
	switch made := result.(type) {
	case Message:
		c.Messages = []Message{made}
	case []Message:
		c.Messages = made
	}
	if len(c.Messages) > 0 {
		c.MessageID = c.Messages[0].ID
		if c.Messages[0].IsTopic {
			c.ThreadID = c.Messages[0].Thread
		}
	}
	return c
}

// answerStatus is the status that the caller gets.
func answerStatus(err error, f Fault) int {
	refused, api := errors.AsType[*apiError](err)
	switch {
	case f.Drop:
		return 0
	case f.Status != 0:
		return f.Status
	case f.Body != "" || err == nil:
		return http.StatusOK
	case api:
		return refused.code
	}
	return http.StatusInternalServerError
}

// acts reports whether a call was carried out and did more than read.
func (c *Call) acts() bool { return c.Accepted && !strings.HasPrefix(c.Method, "get") }

// GetUpdatesCalls is how often getUpdates was called.
func (s *Server) GetUpdatesCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polled
}

// WaitConfirmed waits until the bot has confirmed every update.
func (s *Server) WaitConfirmed(ctx context.Context) error {
	return s.Until(ctx, func() bool { return s.Pending() == 0 })
}

// WaitPolling waits until a call of getUpdates is open.
func (s *Server) WaitPolling(ctx context.Context) error {
	return s.Until(ctx, s.Polling)
}

// Polling reports whether a call of getUpdates is open.
func (s *Server) Polling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.poller != nil
}
