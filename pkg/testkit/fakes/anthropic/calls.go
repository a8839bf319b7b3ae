package anthropic

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"
)

// Call is one call of a method, as it came.
type Call struct {
	At       time.Time
	Method   string // a Method constant, or verb and path of what the API does not have
	Header   http.Header
	Body     []byte
	Request  Request // of messages and count_tokens, once it was let in
	Command  string  // what the last of Request's orders is
	Accepted bool    // it was carried out, whatever the caller was told
	Status   int     // what the caller was told; 0 for a broken connection, and until it is told
	Open     bool    // it is being answered
	Broken   bool    // the connection broke before the end of the answer

	number int
}

// begin notes a call that comes in. One whose body breaks off has what came of it.
func (s *Server) begin(r *http.Request) *Call {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	s.mu.Lock()
	defer s.mu.Unlock()
	call := &Call{
		At: time.Now(), Method: methodOf(r), Header: r.Header.Clone(), Body: body,
		Open: true, Broken: true, number: len(s.calls) + 1,
	}
	s.calls = append(s.calls, call)
	s.happened()
	return call
}

func methodOf(r *http.Request) string {
	switch route := r.Method + " " + r.URL.Path; route {
	case "POST /v1/messages":
		return MethodMessages
	case "POST /v1/messages/count_tokens":
		return MethodCountTokens
	case "GET /v1/models":
		return MethodModels
	default:
		return route
	}
}

// note changes the record of the call.
func (x *exchange) note(change func(*Call)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change(x.call)
	x.happened()
}

func (x *exchange) accept() { x.note(func(c *Call) { c.Accepted = true }) }

// end closes the record. It is deferred: an answer that is cut off ends in a panic.
func (x *exchange) end() {
	cut := recover()
	x.note(func(c *Call) { c.Open, c.Broken = false, cut != nil })
	if cut != nil {
		panic(cut)
	}
}

// Calls are all calls, also those that were refused, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make([]Call, len(s.calls))
	for i, c := range s.calls {
		calls[i] = *c
	}
	return calls
}

// MessageCalls are the calls of messages.
func (s *Server) MessageCalls() []Call {
	return slices.DeleteFunc(s.Calls(), func(c Call) bool { return c.Method != MethodMessages })
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

// Wait waits for the first call, or one that has been, that is like this.
func (s *Server) Wait(ctx context.Context, like func(Call) bool) (Call, error) {
	var found Call
	err := s.Until(ctx, func() bool {
		calls := s.Calls()
		i := slices.IndexFunc(calls, like)
		if i >= 0 {
			found = calls[i]
		}
		return i >= 0
	})
	return found, err
}
