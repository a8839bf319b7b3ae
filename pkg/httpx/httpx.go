// Package httpx is HTTP between the daemons: one JSON error body, one strict decoder, and a
// router, server and client with limits and timeouts.
package httpx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"arizuko/pkg/apierr"
)

// MaxBody is the largest request body that a router from NewRouter accepts, in bytes.
const MaxBody = 1 << 20

// errorBody is the answer to every request that failed.
type errorBody struct {
	Error struct {
		Kind    apierr.Kind `json:"kind"`
		Message string      `json:"message"`
	} `json:"error"`
}

// JSON answers with v. A value that cannot be encoded is a bug and becomes a 500.
func JSON(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(v); err != nil {
		Error(w, fmt.Errorf("encode the answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // it fails only if the client has gone away
}

// Error answers with the status of the error's kind and {"error":{"kind","message"}}. The message
// is that of the *apierr.Error; an internal error's message is not sent, NewRouter logs it instead.
func Error(w http.ResponseWriter, err error) { ErrorStatus(w, apierr.KindOf(err).Status(), err) }

// ErrorStatus is Error with a status that says more than that of the error's kind.
func ErrorStatus(w http.ResponseWriter, status int, err error) {
	var body errorBody
	body.Error.Kind, body.Error.Message = apierr.KindOf(err), messageOf(err)
	if rec := recorderOf(w); rec != nil {
		rec.err = err
	}
	JSON(w, status, body)
}

// messageOf is the message of an error for the caller.
func messageOf(err error) string {
	var e *apierr.Error
	if apierr.KindOf(err) != apierr.Internal && errors.As(err, &e) {
		return e.Message
	}
	return "internal error"
}

// Decode reads a request's body as one JSON value. For an unknown field, a second value or a wrong
// type it returns a bad_request that names it.
func Decode[T any](r *http.Request) (T, error) {
	var v T
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, decodeError(err)
	}
	switch _, err := dec.Token(); {
	case errors.As(err, new(*apierr.Error)):
		return v, decodeError(err)
	case err != io.EOF:
		return v, apierr.New(apierr.BadRequest, "body: more than one JSON value")
	}
	return v, nil
}

func decodeError(err error) error {
	var tooLarge *http.MaxBytesError
	var wrongType *json.UnmarshalTypeError
	var late *apierr.Error
	switch {
	case errors.As(err, &late):
		return late
	case errors.Is(err, io.EOF):
		return apierr.New(apierr.BadRequest, "body: empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return apierr.New(apierr.BadRequest, "body: the JSON is cut off")
	case errors.As(err, &tooLarge):
		return apierr.New(apierr.BadRequest, "body: larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return apierr.New(apierr.BadRequest, "body: field %q: unexpected %s", wrongType.Field, wrongType.Value)
	case errors.As(err, &wrongType):
		return apierr.New(apierr.BadRequest, "body: unexpected %s", wrongType.Value)
	default:
		return apierr.New(apierr.BadRequest, "body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
}
