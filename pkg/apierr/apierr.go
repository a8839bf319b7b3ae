// Package apierr is the closed set of error kinds the daemons use between each other.
// Inside a process errors are wrapped with %w as usual; a fault marks the one that may cross
// the process border, and its message is written for whoever reads it on the other side.
package apierr

import (
	"errors"
	"fmt"
	"net/http"
)

// Kind says what went wrong in terms the caller can act upon. It travels as a string in
// error bodies, so the values are part of the wire format.
type Kind string

const (
	BadRequest   Kind = "bad_request"  // the request itself is wrong; repeating it is useless
	Unauthorized Kind = "unauthorized" // no or wrong credentials
	Forbidden    Kind = "forbidden"    // known caller, not allowed
	NotFound     Kind = "not_found"    // the thing named does not exist
	Conflict     Kind = "conflict"     // the present state forbids it
	Unavailable  Kind = "unavailable"  // try again later
	Internal     Kind = "internal"     // a bug; every error without a kind counts as one
)

// Kinds lists the set.
func Kinds() []Kind {
	return []Kind{BadRequest, Unauthorized, Forbidden, NotFound, Conflict, Unavailable, Internal}
}

// Status is the HTTP status of a kind; 500 for Internal and for anything outside the set.
func (k Kind) Status() int {
	switch k {
	case BadRequest:
		return http.StatusBadRequest
	case Unauthorized:
		return http.StatusUnauthorized
	case Forbidden:
		return http.StatusForbidden
	case NotFound:
		return http.StatusNotFound
	case Conflict:
		return http.StatusConflict
	case Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// KindOfStatus is the inverse of Status. Statuses outside the set, which only proxies and foreign
// servers send, take the kind a caller should treat them as.
func KindOfStatus(status int) Kind {
	for _, k := range Kinds() {
		if k.Status() == status {
			return k
		}
	}
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway, status == http.StatusGatewayTimeout:
		return Unavailable
	case status >= 400 && status < 500:
		return BadRequest
	default:
		return Internal
	}
}

// Error is an error with a kind. Message is all the other process gets to see of it.
type Error struct {
	Kind    Kind
	Message string
	err     error
}

// New makes an error of a kind. The format is that of fmt.Errorf, %w included.
func New(kind Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), err: err}
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.err }

// KindOf finds the kind of an error: that of the outermost fault in its chain, Internal when
// there is none or its kind is outside the set, and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var f *Error
	if !errors.As(err, &f) || (f.Kind.Status() == http.StatusInternalServerError) {
		return Internal
	}
	return f.Kind
}
