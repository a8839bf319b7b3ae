package anthropic

import (
	"cmp"
	"net/http"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Fault makes calls fail. Without Status, Drop and Body it only delays them.
type Fault struct {
	Method string // "" and "*" are every method
	Times  int    // how many calls; 0 is one, negative is until ClearFaults
	After  bool   // the call is carried out all the same, and only its answer fails: a stream in the middle

	Delay       time.Duration // before the call is carried out, or After it
	Drop        bool          // the connection is closed
	Body        string        // the answer, with Status or 200
	Status      int           // an error answer in the API's form; in a stream an error event
	Description string        // of Status, its usual text if empty
	RetryAfter  int           // seconds; Status is 429 then, if it is not given
	ResetAt     time.Time     // a subscription's usage limit is reached until then; Status likewise
}

// prepare completes an injected fault, and returns how many calls it is for.
func (f *Fault) prepare() (times int) {
	if f.RetryAfter > 0 || !f.ResetAt.IsZero() {
		f.Status = cmp.Or(f.Status, http.StatusTooManyRequests)
	}
	return f.Times
}

func (f *Fault) matches(method string) bool {
	return f.Method == "" || f.Method == "*" || f.Method == method
}

// answerFault answers in place of the call, and reports whether it did.
func (x *exchange) answerFault(f Fault) bool {
	switch {
	case f.Drop:
		fakeserver.Abort()
	case f.Body != "":
		x.note(func(c *Call) { c.Status = cmp.Or(f.Status, http.StatusOK) })
		x.setRequestID()
		fakeserver.WriteRaw(x.w, f.Status, f.Body)
	case f.Status != 0:
		x.refuse(f.refused())
	default:
		return false
	}
	return true
}

func (f *Fault) refused() *refused {
	return &refused{status: f.Status, message: f.Description, retryAfter: f.RetryAfter, resetAt: f.ResetAt}
}
