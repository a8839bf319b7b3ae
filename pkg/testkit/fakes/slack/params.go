package slack

import (
	"cmp"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// maxBody bounds the body of a call; files are uploaded to separate URLs.
const maxBody = 4 << 20

// params are the parameters of a call, and its token.
type params struct {
	fakeserver.Params
	bearer string
}

// readParams merges the query and the body, as Slack does.
func readParams(r *http.Request) (params, error) {
	p := params{Params: fakeserver.Params{}}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		p.bearer = strings.TrimSpace(bearer)
	}
	if err := p.readForm(r.URL.RawQuery); err != nil {
		return p, err
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return p, err
	case len(raw) > maxBody:
		return p, errorCode("request_too_large")
	}
	return p, p.readBody(r.Header.Get("Content-Type"), raw)
}

func (p *params) readBody(contentType string, raw []byte) error {
	kind, _, _ := mime.ParseMediaType(contentType)
	switch {
	case kind == "application/json":
		return p.readJSON(raw)
	case kind == "application/x-www-form-urlencoded":
		return p.readForm(string(raw))
	case len(raw) > 0:
		return errorCode("invalid_post_type")
	}
	return nil
}

// readForm takes the token from a field; one in a JSON body does not count.
func (p *params) readForm(raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return errorCode("invalid_form_data")
	}
	for name, all := range values {
		p.Params[name] = all[0]
	}
	if token, ok := p.Params["token"]; ok {
		p.bearer = cmp.Or(p.bearer, token)
		delete(p.Params, "token")
	}
	return nil
}

func (p *params) readJSON(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	if err := p.AddJSON(raw); err != nil {
		return errorCode("invalid_json")
	}
	delete(p.Params, "token")
	return nil
}

func (p params) str(name string) string { return p.Params[name] }

// int is a number; fallback if it is missing or invalid.
func (p params) int(name string, fallback int) int { return int(p.Int(name, int64(fallback))) }

func (p params) bool(name string) bool {
	switch strings.ToLower(p.Params[name]) {
	case "true", "1":
		return true
	}
	return false
}

// json decodes a parameter into v and reports whether it is present.
func (p params) json(name string, v any) (found, valid bool) {
	raw := p.Params[name]
	if raw == "" {
		return false, true
	}
	return true, json.Unmarshal([]byte(raw), v) == nil
}

// list is a parameter of several names, separated by commas.
func (p params) list(name string) []string {
	return strings.FieldsFunc(p.Params[name], func(r rune) bool { return r == ',' || r == ' ' })
}
