package telegram

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Fault makes calls fail. Without Status, Drop and Body it only delays them.
type Fault struct {
	Method string // "" is all methods but getUpdates; "*" is all
	Times  int    // how many calls; 0 is one, negative is until ClearFaults
	After  bool   // the call is carried out; only its answer fails

	Delay       time.Duration // before the call is carried out, or After it
	Drop        bool          // the connection is closed without an answer
	Body        string        // the answer, with Status or 200
	Status      int           // an error answer in Telegram's form
	Description string        // of Status; its standard text if empty
	RetryAfter  int           // seconds; Status is 429 then
}

// prepare completes an injected fault, and returns how many calls it is for.
func (f *Fault) prepare() (times int) {
	if f.RetryAfter > 0 {
		f.Status = http.StatusTooManyRequests
	}
	return f.Times
}

func (f *Fault) matches(method string) bool {
	switch f.Method {
	case method, "*":
		return true
	case "":
		return method != "getUpdates"
	}
	return false
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
	case f.Status != 0:
		writeError(w, f.err())
	default:
		return false
	}
	return true
}

func (f *Fault) err() *apiError {
	if f.RetryAfter > 0 {
		return tooMany(f.RetryAfter)
	}
	return &apiError{code: f.Status, description: cmp.Or(f.Description, http.StatusText(f.Status))}
}

// Inject queues an update with an id and the given JSON fields, which may be malformed updates:
//
//	s.Inject(`"message": "not an object"`)
func (s *Server) Inject(fields string) (id int64) {
	if !json.Valid([]byte("{" + fields + "}")) {
		panic("telegram: not the fields of a JSON object: " + fields) // Fault.Body replaces a whole answer
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enqueue(fields)
}
