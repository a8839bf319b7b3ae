// Package httpx is how the daemons speak HTTP to each other: one JSON error body, one strict
// decoder, a router, server and client with the limits and timeouts already in place.
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

// MaxBody is the largest request body a router from NewRouter lets through, in bytes.
const MaxBody = 1 << 20

// errorBody is what every refused request is answered with.
type errorBody struct {
	Error struct {
		Kind    apierr.Kind `json:"kind"`
		Message string      `json:"message"`
	} `json:"error"`
}

// JSON answers with v. A value that can't be encoded is a bug and becomes a 500.
func JSON(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(v); err != nil {
		Error(w, fmt.Errorf("encode the answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the peer is gone, there is nobody to tell
}

// Error answers with the status of the error's kind and {"error":{"kind","message"}}. The
// message is the fault's own; an internal error says nothing, NewRouter logs it instead.
func Error(w http.ResponseWriter, err error) {
	var body errorBody
	body.Error.Kind, body.Error.Message = apierr.KindOf(err), "internal error"
	var f *apierr.Error
	if body.Error.Kind != apierr.Internal && errors.As(err, &f) {
		body.Error.Message = f.Message
	}
	if rec := recorderOf(w); rec != nil {
		rec.err = err
	}
	JSON(w, body.Error.Kind.Status(), body)
}

// Decode reads a request's body as one JSON value. Unknown fields, a second value and wrong
// types are refused with a bad_request that names them.
func Decode[T any](r *http.Request) (T, error) {
	var v T
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, decodeError(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return v, apierr.New(apierr.BadRequest, "body: more than one JSON value")
	}
	return v, nil
}

func decodeError(err error) error {
	var tooLarge *http.MaxBytesError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return apierr.New(apierr.BadRequest, "body: empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return apierr.New(apierr.BadRequest, "body: the JSON ends in the middle")
	case errors.As(err, &tooLarge):
		return apierr.New(apierr.BadRequest, "body: larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return apierr.New(apierr.BadRequest, "body: field %q must not be a %s", wrongType.Field, wrongType.Value)
	case errors.As(err, &wrongType):
		return apierr.New(apierr.BadRequest, "body: must not be a %s", wrongType.Value)
	default:
		return apierr.New(apierr.BadRequest, "body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
}
