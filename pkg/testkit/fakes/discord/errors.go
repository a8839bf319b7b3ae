package discord

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// apiError is a refusal as the caller sees it.
type apiError struct {
	status     int
	code       int
	message    string
	field      string        // of 50035: the path of the invalid field, such as "embeds.0.title"
	why        [2]string     // of 50035: its code and message
	retryAfter time.Duration // of a rate limit
	global     bool
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s (%d)", e.status, e.message, e.code) }

func refuse(status, code int, message string) error {
	return &apiError{status: status, code: code, message: message}
}

func unknown(code int, what string) error {
	return refuse(http.StatusNotFound, code, "Unknown "+what)
}

func missingAccess() error { return refuse(http.StatusForbidden, 50001, "Missing Access") }

func missingPermissions() error { return refuse(http.StatusForbidden, 50013, "Missing Permissions") }

func tooLarge() error {
	return refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
}

// invalid is the error of one invalid field.
func invalid(field, code, message string) error {
	return &apiError{
		status: http.StatusBadRequest, code: 50035, message: "Invalid Form Body", field: field,
		why: [2]string{code, message},
	}
}

func tooLong(field string, maxLength int) error {
	return invalid(field, "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", maxLength))
}

func required(field string) error {
	return invalid(field, "BASE_TYPE_REQUIRED", "This field is required")
}

func badSnowflake(field, value string) error {
	return invalid(field, "NUMBER_TYPE_COERCE", fmt.Sprintf("Value %q is not snowflake.", value))
}

func limited(wait time.Duration, global bool) *apiError {
	return &apiError{
		status: http.StatusTooManyRequests, message: "You are being rate limited.", retryAfter: wait, global: global,
	}
}

func unauthorized() error { return refuse(http.StatusUnauthorized, 0, "401: Unauthorized") }

func noRoute() error { return refuse(http.StatusNotFound, 0, "404: Not Found") }

// body is the answer to a refused call.
func (e *apiError) body() map[string]any {
	if e.retryAfter > 0 && e.code != 0 {
		return map[string]any{"message": e.message, "code": e.code, "retry_after": e.retryAfter.Seconds()}
	}
	if e.retryAfter > 0 {
		return map[string]any{"message": e.message, "retry_after": e.retryAfter.Seconds(), "global": e.global}
	}
	body := map[string]any{"message": e.message, "code": e.code}
	if e.field == "" {
		return body
	}
	var errs any = map[string]any{"_errors": []any{map[string]string{"code": e.why[0], "message": e.why[1]}}}
	path := strings.Split(e.field, ".")
	for i := len(path) - 1; i >= 0; i-- {
		errs = map[string]any{path[i]: errs}
	}
	body["errors"] = errs
	return body
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	fakeserver.WriteJSON(w, "application/json", status, v)
}
