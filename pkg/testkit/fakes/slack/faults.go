package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Fault makes calls fail. Without Status, Error, Drop and Body it only delays them.
type Fault struct {
	// Method is a method of the Web API, or "upload", "download" or "socket", the handshake. "" is all
	// but "socket" and apps.connections.open; "*" is all. Response URLs have no faults.
	Method string
	Times  int  // how many calls; 0 is one, negative is until ClearFaults
	After  bool // the call is carried out; only its answer fails

	Delay      time.Duration // before the call is carried out, or After it
	Drop       bool          // the connection is closed without an answer
	Body       string        // the answer, with Status or 200
	Status     int           // an answer with this status and its name as the error
	Error      string        // an answer with ok false and this error, with Status or 200
	RetryAfter int           // seconds; Status is 429 then
}

// prepare completes an injected fault, and returns how many calls it is for.
func (f *Fault) prepare() (times int) {
	if f.RetryAfter > 0 {
		f.Status, f.Error = http.StatusTooManyRequests, "ratelimited"
	}
	return f.Times
}

func (f *Fault) matches(method string) bool {
	switch f.Method {
	case method, "*":
		return true
	case "":
		return method != "socket" && method != "apps.connections.open"
	}
	return false
}

// refuses reports whether the caller gets no proper answer.
func (f *Fault) refuses() bool { return f.Drop || f.Body != "" || f.Status != 0 || f.Error != "" }

// answer answers in place of the call, and reports whether it did.
func (f *Fault) answer(w http.ResponseWriter) bool {
	switch {
	case f.Drop:
		fakeserver.Abort()
	case f.Body != "":
		fakeserver.WriteRaw(w, f.Status, f.Body)
	case f.refuses():
		writeError(w, &apiError{
			status: f.Status, code: cmp.Or(f.Error, http.StatusText(f.Status)), retryAfter: f.RetryAfter,
		})
	default:
		return false
	}
	return true
}

// SetReachable with false breaks every connection, sockets too, and every later one before it is
// answered, until SetReachable(true).
func (s *Server) SetReachable(ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Host.SetReachable(ok)
	if ok {
		s.dispatch()
	} else {
		s.breakSockets()
	}
}

// InjectHistory makes the history of a conversation begin with the given JSON values, whatever they are.
func (p Place) InjectHistory(messages ...string) {
	p.act(func(r *room) error {
		for _, m := range messages {
			if !json.Valid([]byte(m)) {
				return fmt.Errorf("not JSON: %s", m)
			}
			r.odd = append(r.odd, json.RawMessage(m))
		}
		return nil
	})
}
