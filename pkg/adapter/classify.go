package adapter

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"arizuko/pkg/msg"
)

// ErrUnsent is wrapped by errors of calls that never left this machine.
var ErrUnsent = errors.New("not reached")

// ErrNoMessage is the error of a call that makes a message, and whose answer has no id: it is not the platform's.
var ErrNoMessage = errors.New("the answer has no id of a message: it is not the platform's")

// ForeignWait is how long an account waits that a proxy or a firewall in front of the API refuses for its rate without
// saying for how long, and maxForeignWait the longest time that it may say.
const (
	ForeignWait    = 10 * time.Second
	maxForeignWait = time.Hour
)

// Failure is why a part was not delivered, or why a connection ended.
type Failure struct {
	Class msg.ErrorClass
	After time.Duration // how long the platform asks to wait, 0 if it does not say
	// Account means that After holds for everything the account sends, not only for this lane.
	Account bool
	// Other, if not nil, is another form of a part that was refused: the shell sends it at once, as the
	// same attempt. Remark says how the form differs; the record of a part that was sent keeps it. An
	// Other may be refused with an Other of its own. The failure is the part's only if no form is sent.
	Other  Part
	Remark string
	Err    error
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Class, f.Err) }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// unsent reports whether the platform was not reached.
func (f *Failure) unsent() bool { return f.Class == msg.Transient && errors.Is(f.Err, ErrUnsent) }

// refused reports whether the platform refused a call, so that it can be reached.
func (f *Failure) refused() bool {
	return f.Class == msg.Permanent || f.Class == msg.Rate || f.Class == msg.Auth
}

// Remark is returned by Send for a part that was sent in another form than the row asks for. The record
// of the delivery keeps the text.
type Remark struct{ Text string }

func (r *Remark) Error() string { return r.Text }

// Refusal is how a platform's API refused a call.
type Refusal struct {
	Status     int    // of HTTP, 0 if Code says it all
	Code       string // the platform's own error code, "" for none
	RetryAfter time.Duration
	// Foreign means that the answer is not the API's, but a page of a proxy or of a firewall in front of it.
	Foreign bool
}

// Classes are the answers of an API whose class is not the default one. By default status 429 is a
// rate failure, 5xx leaves it open whether the call was carried out, and every other status and
// every code is permanent. A foreign answer that is not about the call itself is a transient failure, and
// with status 429 one of the whole account, since it is about this machine's address.
type Classes struct {
	Status map[int]msg.ErrorClass
	Code   map[string]msg.ErrorClass
}

// Classify makes a *Failure of a call's error. refused is nil if the API did not answer: a call that
// was sent may have been carried out then. An error that is a *Failure already stays as it is.
func (c Classes) Classify(err error, refused *Refusal) *Failure {
	var given *Failure
	switch {
	case errors.As(err, &given):
		return given
	case refused != nil:
		f := &Failure{Class: c.of(refused), After: refused.RetryAfter, Err: err}
		if f.Account = refused.Foreign && f.Class == msg.Rate; f.Account {
			f.After = foreignWait(refused.RetryAfter)
		}
		return f
	case errors.Is(err, ErrUnsent):
		return &Failure{Class: msg.Transient, Err: err}
	}
	return &Failure{Class: msg.Ambiguous, Err: err}
}

func (c Classes) of(r *Refusal) msg.ErrorClass {
	if r.Foreign && r.Status < http.StatusInternalServerError {
		switch r.Status {
		case http.StatusTooManyRequests, http.StatusBadRequest, http.StatusRequestEntityTooLarge,
			http.StatusRequestURITooLong,
			http.StatusUnsupportedMediaType, http.StatusRequestHeaderFieldsTooLarge:
		default:
			return msg.Transient // it is about this machine or its way to the API, not about the call
		}
	}
	if class, ok := c.Code[r.Code]; ok {
		return class
	}
	if class, ok := c.Status[r.Status]; ok {
		return class
	}
	switch {
	case r.Status == http.StatusTooManyRequests:
		return msg.Rate
	case r.Status >= http.StatusInternalServerError:
		return msg.Ambiguous
	}
	return msg.Permanent
}

// foreignWait is how long the account waits for a proxy that asks for a time, 0 if it does not say.
func foreignWait(asked time.Duration) time.Duration {
	return min(cmp.Or(asked, ForeignWait), maxForeignWait)
}

// RetryAfter is how long an answer asks to wait, 0 if it does not say.
func RetryAfter(h http.Header) time.Duration {
	seconds, _ := strconv.Atoi(h.Get("Retry-After")) // 0 for a date too
	return time.Duration(min(max(seconds, 0), int(maxWait.Seconds()))) * time.Second
}

// ForeignRate is the failure of a call that a proxy in front of the API has refused for its rate.
func ForeignRate(res *http.Response) *Failure {
	return &Failure{
		Class: msg.Rate, Account: true, After: foreignWait(RetryAfter(res.Header)),
		Err: fmt.Errorf("a proxy or firewall answers in place of the platform with %s", res.Status),
	}
}

// HandshakeError says how a websocket's handshake with a server failed. res is the answer, nil for none.
func HandshakeError(server string, res *http.Response, err error) error {
	if res == nil {
		return err
	}
	if res.Body != nil {
		_ = res.Body.Close() // nothing of it is needed
	}
	err = fmt.Errorf("%s answers the handshake of a websocket with %s", server, res.Status)
	if res.StatusCode == http.StatusTooManyRequests {
		err = &Failure{Class: msg.Transient, After: foreignWait(RetryAfter(res.Header)), Err: err}
	}
	return err
}
