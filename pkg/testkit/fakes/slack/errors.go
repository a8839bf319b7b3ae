package slack

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// apiError is a refusal as the caller sees it.
type apiError struct {
	status     int    // 0 is 200, as of most of Slack's errors
	code       string // Slack's error
	needed     string // the scope, of missing_scope
	provided   string
	retryAfter int // seconds
}

func (e *apiError) Error() string { return e.code }

func errorCode(code string) error { return &apiError{code: code} }

func tooMany(seconds int) *apiError {
	return &apiError{status: http.StatusTooManyRequests, code: "ratelimited", retryAfter: seconds}
}

type refusal struct {
	OK       bool   `json:"ok"`
	Error    string `json:"error"`
	Needed   string `json:"needed,omitempty"`
	Provided string `json:"provided,omitempty"`
}

func writeError(w http.ResponseWriter, err error) {
	refused, ok := errors.AsType[*apiError](err)
	if !ok {
		refused = &apiError{code: "internal_error"}
	}
	if refused.retryAfter != 0 {
		w.Header().Set("Retry-After", strconv.Itoa(refused.retryAfter))
	}
	writeJSON(w, cmp.Or(refused.status, http.StatusOK), refusal{
		Error: refused.code, Needed: refused.needed, Provided: refused.provided,
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	fakeserver.WriteJSON(w, "application/json; charset=utf-8", status, v)
}
