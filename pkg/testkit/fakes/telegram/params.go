package telegram

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// The documented limits of the hosted Bot API, in bytes.
const (
	maxUpload   = 50 << 20
	maxPhoto    = 10 << 20
	maxDownload = 20 << 20
	maxLocal    = 2000 << 20 // in place of maxUpload on a server that is run with --local
	otherParams = 1 << 20    // besides a file
)

// Upload is a file that came with a request.
type Upload struct {
	Kind string // photo, document, video, audio or voice
	Name string
	Data []byte
}

// params are the parameters of a call, and its files by the parameter's name.
type params struct {
	fakeserver.Params
	maxFile int // bytes
	files   map[string]Upload
}

// readParams merges the query and the body, as the Bot API does.
func readParams(r *http.Request, maxFile int) (params, error) {
	p := params{Params: fakeserver.Params{}, maxFile: maxFile, files: map[string]Upload{}}
	if err := p.readForm(r.URL.RawQuery); err != nil {
		return p, err
	}
	tooBig, err := fakeserver.ReadLimited(r, int64(maxFile+otherParams),
		func(body io.Reader) error { return p.readBody(r, body) })
	if tooBig {
		return p, tooLarge()
	}
	return p, err
}

func (p *params) readBody(r *http.Request, body io.Reader) error {
	kind, options, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind { // a body of another type has no parameters
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

// readForm takes a semicolon as part of a value: Go's parser refuses it.
func (p *params) readForm(raw string) error {
	values, err := url.ParseQuery(strings.ReplaceAll(raw, ";", "%3B"))
	if err != nil {
		return badRequest("can't parse parameters")
	}
	for name, all := range values {
		p.Params[name] = all[0]
	}
	return nil
}

func (p *params) readJSON(body io.Reader) error {
	raw, err := io.ReadAll(body)
	if err != nil || len(raw) == 0 {
		return err
	}
	if err := p.AddJSON(raw); err != nil {
		return badRequest("can't parse request body as JSON object")
	}
	return nil
}

// readMultipart keeps the files in memory: together they have at most maxFile and otherParams bytes.
func (p *params) readMultipart(body io.Reader, boundary string) error {
	err := fakeserver.ReadParts(body, boundary, func(part fakeserver.Part) error {
		switch {
		case part.FileName == "":
			p.Params[part.Name] = string(part.Data)
		case len(part.Data) > p.maxFile:
			return tooLarge()
		default:
			p.files[part.Name] = Upload{Name: part.FileName, Data: part.Data}
		}
		return nil
	})
	if errors.Is(err, fakeserver.ErrMultipart) {
		return badRequest("can't parse multipart form data")
	}
	return err
}

func (p params) str(name string) string { return p.Params[name] }

// int is a number; fallback if it is missing or invalid, which the Bot API treats alike.
func (p params) int(name string, fallback int64) int64 { return p.Int(name, fallback) }

func (p params) bool(name string) bool {
	switch strings.ToLower(p.Params[name]) {
	case "true", "1", "yes":
		return true
	}
	return false
}

// json decodes a parameter into v and reports whether it is present.
func (p params) json(name string, v any) (bool, error) {
	raw := p.Params[name]
	if raw == "" {
		return false, nil
	}
	if err := json.Unmarshal([]byte(raw), v); err != nil {
		return true, badRequest("can't parse %s JSON object", strings.ReplaceAll(name, "_", " "))
	}
	return true, nil
}

// replyTo is the message to reply to, 0 for none, and whether that may be missing.
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
