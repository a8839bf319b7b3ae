// Package apierr is the closed set of error kinds that cross processes. Inside a process errors
// are wrapped with %w as usual; an Error marks the one that may be sent to the caller, and its
// message is written for that caller.
package apierr

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
)

// Kind is the kind of failure, in terms a caller can act on. It is sent as a string in error bodies,
// so the values are part of the wire format.
type Kind string

const (
	BadRequest   Kind = "bad_request"  // the request is invalid; a retry fails again
	Unauthorized Kind = "unauthorized" // no credentials, or invalid ones
	Forbidden    Kind = "forbidden"    // a known caller that is not allowed to
	NotFound     Kind = "not_found"    // what the request names does not exist
	Conflict     Kind = "conflict"     // the current state does not allow it
	Unavailable  Kind = "unavailable"  // retry later
	Internal     Kind = "internal"     // a bug; every error without a kind counts as one
)

// statuses are the HTTP statuses of the kinds.
var statuses = map[Kind]int{
	BadRequest:   http.StatusBadRequest,
	Unauthorized: http.StatusUnauthorized,
	Forbidden:    http.StatusForbidden,
	NotFound:     http.StatusNotFound,
	Conflict:     http.StatusConflict,
	Unavailable:  http.StatusServiceUnavailable,
	Internal:     http.StatusInternalServerError,
}

// Status is the HTTP status of a kind; 500 for anything outside the set.
func (k Kind) Status() int { return cmp.Or(statuses[k], http.StatusInternalServerError) }

// KindOfStatus is the inverse of Status. A status outside the set, which only proxies and foreign
// servers send, gets the kind a caller should treat it as.
func KindOfStatus(status int) Kind {
	for k, of := range statuses {
		if of == status {
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

// Error is an error with a kind. The caller receives Kind and Message, nothing else.
type Error struct {
	Kind    Kind
	Message string
	err     error
}

// New returns an *Error of a kind. The format is that of fmt.Errorf, %w included.
func New(kind Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), err: err}
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.err }

// KindOf returns the kind of the outermost *Error in err's chain, Internal if there is none or its
// kind is outside the set, and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if !errors.As(err, &e) || e.Kind.Status() == http.StatusInternalServerError {
		return Internal
	}
	return e.Kind
}
