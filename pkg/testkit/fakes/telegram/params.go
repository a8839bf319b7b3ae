package telegram

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// The sizes are the documented ones of the hosted Bot API.
const (
	maxUpload   = 50 << 20
	maxPhoto    = 10 << 20
	maxDownload = 20 << 20
	maxBody     = maxUpload + 1<<20 // a file and the fields beside it
	maxDrained  = 2 * maxBody
)

// Upload is a file that came with a request.
type Upload struct {
	Kind string // photo, document, video, audio, voice, animation, sticker
	Name string
	Data []byte
}

// params are the fields of a request, in whatever form they came; what was not a string in
// a JSON body is kept as JSON.
type params struct {
	values map[string]string
	files  map[string]Upload
}

// readParams takes the query and the body together, as the Bot API does.
func readParams(r *http.Request) (params, error) {
	p := params{values: map[string]string{}, files: map[string]Upload{}}
	if err := p.readForm(r.URL.RawQuery); err != nil {
		return p, err
	}
	body := &io.LimitedReader{R: r.Body, N: maxBody + 1}
	err := p.readBody(r, body)
	if body.N == 0 {
		// Somebody who is still writing would see a broken connection instead of the answer.
		_, _ = io.CopyN(io.Discard, r.Body, maxDrained)
		return p, tooLarge()
	}
	return p, err
}

func (p *params) readBody(r *http.Request, body io.Reader) error {
	kind, options, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind { // a body of another type, or of none, has no fields
	case "multipart/form-data":
		return p.readMultipart(body, options["boundary"])
	case "application/json":
		return p.readJSON(body)
	case "application/x-www-form-urlencoded":
		raw, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		return p.readForm(string(raw))
	}
	return nil
}

// readForm takes a semicolon for what it is: Go's parser would refuse it.
func (p *params) readForm(raw string) error {
	values, err := url.ParseQuery(strings.ReplaceAll(raw, ";", "%3B"))
	if err != nil {
		return badRequest("can't parse parameters")
	}
	for name, all := range values {
		p.values[name] = all[0]
	}
	return nil
}

func (p *params) readJSON(body io.Reader) error {
	raw, err := io.ReadAll(body)
	if err != nil || len(raw) == 0 {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return badRequest("can't parse request body as JSON object")
	}
	for name, value := range fields {
		var text string
		if string(value) == "null" {
			continue
		}
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		p.values[name] = text
	}
	return nil
}

func (p params) str(name string) string { return p.values[name] }

// int is a number, or fallback where there is none: the Bot API takes nonsense for absent.
func (p params) int(name string, fallback int64) int64 {
	n, err := strconv.ParseInt(p.values[name], 10, 64)
	if err != nil {
		return fallback
	}
	return n
}

func (p params) bool(name string) bool {
	switch strings.ToLower(p.values[name]) {
	case "true", "1", "yes":
		return true
	}
	return false
}

// json decodes a field into v and reports whether it is there.
func (p params) json(name string, v any) (bool, error) {
	raw := p.values[name]
	if raw == "" {
		return false, nil
	}
	if err := json.Unmarshal([]byte(raw), v); err != nil {
		return true, badRequest("can't parse %s JSON object", strings.ReplaceAll(name, "_", " "))
	}
	return true, nil
}

// replyTo is the message that is answered, 0 for none, and whether it may be gone.
func (p params) replyTo() (id int, optional bool, err error) {
	var reply struct {
		MessageID int  `json:"message_id"`
		Optional  bool `json:"allow_sending_without_reply"`
	}
	found, err := p.json("reply_parameters", &reply)
	if err != nil {
		return 0, false, badRequest("object expected as reply parameters")
	}
	if found {
		return reply.MessageID, reply.Optional, nil
	}
	return int(p.int("reply_to_message_id", 0)), p.bool("allow_sending_without_reply"), nil
}

// clone keeps a request's fields for the record.
func (p params) clone() map[string]string { return maps.Clone(p.values) }

// isAPI reports whether err is a refusal, rather than a request that broke off.
func isAPI(err error) (*apiError, bool) {
	var refused *apiError
	ok := errors.As(err, &refused)
	return refused, ok
}
