package adapter

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"arizuko/pkg/msg"
)

// ErrUnsent is wrapped by errors of calls that never left this machine.
var ErrUnsent = errors.New("not reached")

// Failure is why a part was not delivered, or why a connection ended.
type Failure struct {
	Class msg.ErrorClass
	After time.Duration // how long the platform asks to wait, 0 if it does not say
	Err   error
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Class, f.Err) }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Remark is returned by Send for a part that was sent in another form than intended. The record
// of the delivery keeps the text.
type Remark struct{ Text string }

func (r *Remark) Error() string { return r.Text }

// Refusal is how a platform's API refused a call.
type Refusal struct {
	Status     int    // of HTTP, 0 if Code says it all
	Code       string // the platform's own error code, "" for none
	RetryAfter time.Duration
}

// Classes are the answers of an API whose class is not the default one. By default status 429 is a
// rate failure, 5xx leaves it open whether the call was carried out, and every other status and
// every code is permanent.
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
		return &Failure{Class: c.of(refused), After: refused.RetryAfter, Err: err}
	case errors.Is(err, ErrUnsent):
		return &Failure{Class: msg.Transient, Err: err}
	}
	return &Failure{Class: msg.Ambiguous, Err: err}
}

func (c Classes) of(r *Refusal) msg.ErrorClass {
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
