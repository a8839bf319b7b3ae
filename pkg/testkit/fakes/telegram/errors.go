package telegram

import (
	"fmt"
	"net/http"
)

// apiError is a refusal as the caller sees it.
type apiError struct {
	code        int
	description string
	migratedTo  int64
	retryAfter  int // seconds
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s", e.code, e.description) }

func badRequest(format string, args ...any) error {
	return &apiError{code: http.StatusBadRequest, description: "Bad Request: " + fmt.Sprintf(format, args...)}
}

func forbidden(reason string) error {
	return &apiError{code: http.StatusForbidden, description: "Forbidden: " + reason}
}

func conflict(reason string) error {
	return &apiError{code: http.StatusConflict, description: "Conflict: " + reason}
}

func tooMany(seconds int) *apiError {
	return &apiError{
		code:        http.StatusTooManyRequests,
		description: fmt.Sprintf("Too Many Requests: retry after %d", seconds),
		retryAfter:  seconds,
	}
}

func unauthorized() error {
	return &apiError{code: http.StatusUnauthorized, description: "Unauthorized"}
}

func notFound() error {
	return &apiError{code: http.StatusNotFound, description: "Not Found"}
}

// tooLarge is the answer of the platform's front server, which does not look at the method.
func tooLarge() error {
	return &apiError{code: http.StatusRequestEntityTooLarge, description: "Request Entity Too Large"}
}
