package discord

import (
	"cmp"
	"net/http"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Fault makes calls fail. Without Status, Drop and Body it only delays them.
type Fault struct {
	Route string // such as CreateMessage; "" is all but Connect and Download
	Times int    // how many calls; 0 is one, negative is until ClearFaults
	After bool   // the call is carried out; only its answer fails

	Delay      time.Duration   // before the call is carried out, or After it
	Held       <-chan struct{} // the call is not carried out before it is closed
	Drop       bool            // the connection is closed without an answer
	Body       string          // the answer, with Status or 200
	Status     int             // an error answer; without Code a page of HTML, as of the proxy
	Code       int             // Discord's own code of an error; with status 429 it is about one message, without headers
	Message    string          // of Code
	RetryAfter time.Duration   // Status is 429 then; with Code it may be left out
	Global     bool            // with RetryAfter: the global limit
}

// prepare completes an injected fault, and returns how many calls it is for.
func (f *Fault) prepare() (times int) {
	if f.RetryAfter > 0 {
		f.Status = http.StatusTooManyRequests
	}
	return f.Times
}

func (f *Fault) matches(route string) bool {
	if f.Route == "" {
		return route != Connect && route != Download
	}
	return f.Route == route
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
	case f.RetryAfter > 0 && f.Code == 0:
		writeError(w, limited(f.RetryAfter, f.Global))
	case f.Code != 0 || f.Status == http.StatusUnauthorized:
		writeError(w, &apiError{status: f.Status, code: f.Code, message: cmp.Or(f.Message, http.StatusText(f.Status)),
			retryAfter: f.RetryAfter})
	case f.Status != 0:
		writeProxyPage(w, f.Status, http.StatusText(f.Status))
	default:
		return false
	}
	return true
}
