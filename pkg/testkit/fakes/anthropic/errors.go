package anthropic

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// StatusOverloaded is the API's own status for a lack of capacity.
const StatusOverloaded = 529

// refused is an error answer.
type refused struct {
	status     int
	message    string
	retryAfter int // seconds
	resetAt    time.Time
}

func (r *refused) Error() string { return fmt.Sprintf("%d %s", r.status, r.message) }

func refusal(status int, message string) error { return &refused{status: status, message: message} }

// asRefused turns any other error into an internal one of the API.
func asRefused(err error) *refused {
	var r *refused
	if errors.As(err, &r) {
		return r
	}
	return &refused{status: http.StatusInternalServerError, message: err.Error()}
}

// body is the documented form of an error.
func (r *refused) body(requestID string) map[string]any {
	kind, usual := describe(r.status)
	return map[string]any{
		"type":       "error",
		"error":      map[string]string{"type": kind, "message": cmp.Or(r.message, usual)},
		"request_id": requestID,
	}
}

// describe is the documented type of a status, and its usual message.
func describe(status int) (kind, usual string) {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error", "invalid x-api-key"
	case http.StatusPaymentRequired:
		return "billing_error", "Your credit balance is too low to access the Anthropic API."
	case http.StatusForbidden:
		return "permission_error", "Your API key does not have permission to use the specified resource."
	case http.StatusNotFound:
		return "not_found_error", "The requested resource could not be found."
	case http.StatusRequestEntityTooLarge:
		return "request_too_large", "Request exceeds the maximum size"
	case http.StatusTooManyRequests:
		return "rate_limit_error", "This request would exceed the rate limit of your organization."
	case http.StatusGatewayTimeout:
		return "timeout_error", "The request timed out."
	case StatusOverloaded:
		return "overloaded_error", "Overloaded"
	}
	if status >= http.StatusInternalServerError {
		return "api_error", "Internal server error"
	}
	return "invalid_request_error", "The request is not valid."
}
