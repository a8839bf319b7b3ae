package discord

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// The documented limits for users and guilds without a subscription, in bytes.
const (
	maxUpload = 10 << 20
	maxBody   = 25 << 20 // all files and fields of one request
)

// Upload is a file that came with a request.
type Upload struct {
	Field string // "files[0]"
	Name  string
	Data  []byte
}

// request is a call with its body.
type request struct {
	call    Call
	path    func(wildcard string) string
	query   url.Values
	host    string
	payload json.RawMessage // the JSON body, or payload_json; nil without one
}

// readRequest reads the body. It returns the request even with an error, for the record.
func readRequest(r *http.Request, name string) (*request, error) {
	q := &request{
		path: r.PathValue, query: r.URL.Query(), host: r.Host,
		call: Call{Route: name, Path: r.URL.Path, ChannelID: r.PathValue("channel"), MessageID: r.PathValue("message")},
	}
	tooBig, err := fakeserver.ReadLimited(r, maxBody, func(body io.Reader) error {
		return q.readBody(r.Header.Get("Content-Type"), body)
	})
	if tooBig {
		return q, tooLarge()
	}
	q.call.Body = q.payload
	return q, err
}

func (q *request) readBody(contentType string, body io.Reader) error {
	kind, options, _ := mime.ParseMediaType(contentType)
	if kind == "multipart/form-data" {
		return q.readMultipart(body, options["boundary"])
	}
	raw, err := io.ReadAll(body)
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return err
	}
	if kind != "application/json" {
		return invalid("_", "CONTENT_TYPE_INVALID",
			"Expected \"Content-Type\" header to be one of {'application/json', 'multipart/form-data'}.")
	}
	q.payload = raw
	if !json.Valid(raw) {
		q.payload = nil
		return badJSON()
	}
	return nil
}

func badJSON() error {
	return refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
}

// readMultipart keeps the files in memory: together they have at most maxBody bytes.
func (q *request) readMultipart(body io.Reader, boundary string) error {
	err := fakeserver.ReadParts(body, boundary, func(part fakeserver.Part) error {
		switch {
		case part.Name == "payload_json":
			if !json.Valid(part.Data) {
				return badJSON()
			}
			q.payload = part.Data
		case part.FileName != "":
			q.call.Files = append(q.call.Files, Upload{Field: part.Name, Name: part.FileName, Data: part.Data})
		}
		return nil
	})
	if errors.Is(err, fakeserver.ErrMultipart) {
		return badJSON()
	}
	return err
}

// decode reads the body's fields. A missing body has none.
func (q *request) decode(v any) error {
	if q.payload == nil {
		return nil
	}
	err := json.Unmarshal(q.payload, v)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field == "" {
			return refuse(http.StatusBadRequest, 50035, "Invalid Form Body")
		}
		return invalid(wrong.Field, "BASE_TYPE_BAD", fmt.Sprintf("Could not interpret %q as %s.", wrong.Value,
			wrong.Type))
	}
	if err != nil {
		return invalid("_", "BASE_TYPE_BAD", err.Error()) // of a field with an UnmarshalJSON
	}
	return nil
}

// number is a parameter of the query, which must be within bounds.
func (q *request) number(name string, fallback, minimum, maximum int) (int, error) {
	text := q.query.Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, invalid(name, "NUMBER_TYPE_COERCE", fmt.Sprintf("Value %q is not int.", text))
	case n < minimum:
		return 0, invalid(name, "NUMBER_TYPE_MIN", fmt.Sprintf("int value should be greater than or equal to %d.",
			minimum))
	case n > maximum:
		return 0, invalid(name, "NUMBER_TYPE_MAX", fmt.Sprintf("int value should be less than or equal to %d.",
			maximum))
	}
	return n, nil
}

// moment is a time in the query, the zero time without one.
func (q *request) moment(name string) (at time.Time, err error) {
	text := q.query.Get(name)
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return at, invalid(name, "DATETIME_TYPE_COERCE", fmt.Sprintf("Value %q is not a datetime.", text))
	}
	return at, nil
}

// snowflake is an id in the query, "" without one.
func (q *request) snowflake(name string) (string, error) {
	id := q.query.Get(name)
	if _, ok := snowflake(id); id != "" && !ok {
		return "", badSnowflake(name, id)
	}
	return id, nil
}

// id is a wildcard of the path, which must be a snowflake.
func (q *request) id(wildcard string) (string, error) {
	id := q.path(wildcard)
	if _, ok := snowflake(id); !ok {
		return "", badSnowflake(wildcard+"_id", id)
	}
	return id, nil
}

// files validates the uploaded files.
func (q *request) files() ([]Upload, error) {
	if len(q.call.Files) > maxAttachments {
		return nil, invalid("attachments", "BASE_TYPE_MAX_LENGTH",
			fmt.Sprintf("Must be %d or fewer in length.", maxAttachments))
	}
	for _, u := range q.call.Files {
		if len(u.Data) > maxUpload {
			return nil, tooLarge()
		}
		if !strings.HasPrefix(u.Field, "file") {
			return nil, invalid(u.Field, "BASE_TYPE_BAD", "Unknown part.")
		}
	}
	return q.call.Files, nil
}

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

func archived() error { return refuse(400, 50083, "Thread is archived") }

func notInPrivate() error { return refuse(403, 50003, "Cannot execute action on a DM channel") }

func wrongType() error { return refuse(400, 50024, "Cannot execute action on this channel type") }

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
