package telegram

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Call is one call of a method, as it came. Calls of getUpdates are only counted.
type Call struct {
	At       time.Time
	Method   string
	Params   map[string]string // as sent, without the files
	Accepted bool              // it was carried out, whatever the caller was told
	Status   int               // what the caller was told; 0 for a broken connection

	ChatID    int64
	ThreadID  int    // the topic asked for, or that a message went to
	MessageID int    // of the message that was made, or acted upon
	Text      string // or the caption
	Entities  []Entity
	ReplyTo   int
	Files     []Upload
	Reactions []string  // emoji
	Action    string    // of sendChatAction
	Messages  []Message // what was made or edited
}

// record keeps a call that was not carried out.
func (s *Server) record(m method, p params, result any, err error, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.poll != nil {
		s.polled++
	} else {
		call := s.keep(m, p, result, err, f)
		call.Accepted = false
	}
	s.happened()
}

// keep notes a call. The lock is held.
func (s *Server) keep(m method, p params, result any, err error, f Fault) *Call {
	reply, _, _ := p.replyTo()
	c := Call{
		At: time.Now(), Method: m.name, Params: p.clone(), Accepted: err == nil, Status: seen(err, f),
		ChatID: p.int("chat_id", 0), ThreadID: int(p.int("message_thread_id", 0)), MessageID: int(p.int("message_id", 0)),
		Text: p.str("text") + p.str("caption"), ReplyTo: reply, Action: p.str("action"),
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
	s.calls = append(s.calls, c)
	return &s.calls[len(s.calls)-1]
}

// seen is the status that a caller gets.
func seen(err error, f Fault) int {
	refused, api := isAPI(err)
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

// asks reports whether a call only looked at something.
func (c *Call) asks() bool { return strings.HasPrefix(c.Method, "get") }

// Calls are all calls but those of getUpdates, also those that were refused, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Sent is what the bot did: the calls that were carried out and changed something.
func (s *Server) Sent() []Call {
	return slices.DeleteFunc(s.Calls(), func(c Call) bool { return !c.Accepted || c.asks() })
}

// Polled is how often getUpdates was called.
func (s *Server) Polled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polled
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

// WaitSent waits until the bot has sent n messages, files, albums or polls; it returns all.
func (s *Server) WaitSent(ctx context.Context, n int) ([]Call, error) {
	var sent []Call
	err := s.Until(ctx, func() bool {
		sent = slices.DeleteFunc(s.Sent(), func(c Call) bool { return !c.sends() })
		return len(sent) >= n
	})
	return sent, err
}

// sends reports whether a call made messages.
func (c *Call) sends() bool {
	return strings.HasPrefix(c.Method, "send") && c.Method != "sendChatAction"
}

// WaitConfirmed waits until the bot has confirmed every update.
func (s *Server) WaitConfirmed(ctx context.Context) error {
	return s.Until(ctx, func() bool { return s.Pending() == 0 })
}

// WaitPolling waits until a getUpdates is open.
func (s *Server) WaitPolling(ctx context.Context) error {
	return s.Until(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.queue.poller != nil
	})
}

// Answers is for Wait: a message of the bot in a chat, or in a topic of it.
func Answers(p Place) func(Call) bool {
	return func(c Call) bool {
		return c.sends() && c.ChatID == p.ChatID && (p.ThreadID == 0 || c.ThreadID == p.ThreadID)
	}
}
