// Package endpoint has what gated's HTTP endpoints share.
package endpoint

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
)

// Handler answers requests with what handle returns, as JSON. An error of no kind is one of the database, and asks the
// client to retry.
func Handler(status int, handle func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := handle(r)
		switch {
		case err == nil:
			httpx.JSON(w, status, v)
		case errors.As(err, new(*apierr.Error)):
			httpx.Error(w, err)
		default:
			httpx.Error(w, apierr.New(apierr.Unavailable, "the database is not available right now: %w", err))
		}
	}
}

// ID is the id in the path of a request.
func ID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, apierr.New(apierr.BadRequest, "%.40q is not an id", chi.URLParam(r, "id"))
	}
	return id, nil
}
