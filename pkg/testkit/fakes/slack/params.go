package slack

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxBody bounds what a call of a method may carry; files go to addresses of their own.
const maxBody = 4 << 20

// params are the fields of a request, in whatever form they came; what was not a string in
// a JSON body is kept as JSON.
type params struct {
	values map[string]string
	bearer string
}

// readParams takes the query and the body together, as Slack does.
func readParams(r *http.Request) (params, error) {
	p := params{values: map[string]string{}}
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
		return p, word("request_too_large")
	}
	if err := p.readBody(r.Header.Get("Content-Type"), raw); err != nil {
		return p, err
	}
	return p, nil
}

func (p *params) readBody(contentType string, raw []byte) error {
	kind, options, _ := mime.ParseMediaType(contentType)
	switch {
	case kind == "application/json":
		return p.readJSON(raw)
	case kind == "multipart/form-data":
		return p.readMultipart(raw, options["boundary"])
	case kind == "application/x-www-form-urlencoded":
		return p.readForm(string(raw))
	case len(raw) > 0 && kind == "":
		return word("missing_post_type")
	case len(raw) > 0:
		return word("invalid_post_type")
	}
	return nil
}

// readForm takes the token from a field; a JSON body's one does not count.
func (p *params) readForm(raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return word("invalid_form_data")
	}
	for name, all := range values {
		p.values[name] = all[0]
	}
	if token, ok := p.values["token"]; ok {
		p.bearer = cmp.Or(p.bearer, token)
		delete(p.values, "token")
	}
	return nil
}

func (p *params) readMultipart(raw []byte, boundary string) error {
	form, err := multipart.NewReader(strings.NewReader(string(raw)), boundary).ReadForm(maxBody)
	if err != nil {
		return word("invalid_form_data")
	}
	defer func() { _ = form.RemoveAll() }() // nothing is on disk below maxBody
	return p.readForm(url.Values(form.Value).Encode())
}

func (p *params) readJSON(raw []byte) error {
	var fields map[string]json.RawMessage
	if len(raw) == 0 {
		return nil
	}
	if json.Unmarshal(raw, &fields) != nil {
		if json.Valid(raw) {
			return word("json_not_object")
		}
		return word("invalid_json")
	}
	for name, value := range fields {
		var text string
		if string(value) == "null" || name == "token" {
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

// int is a number, or fallback where there is none or nonsense.
func (p params) int(name string, fallback int) int {
	n, err := strconv.Atoi(p.values[name])
	if err != nil {
		return fallback
	}
	return n
}

func (p params) bool(name string) bool {
	switch strings.ToLower(p.values[name]) {
	case "true", "1":
		return true
	}
	return false
}

// json decodes a field into v and reports whether it is there.
func (p params) json(name string, v any) (found, valid bool) {
	raw := p.values[name]
	if raw == "" {
		return false, true
	}
	return true, json.Unmarshal([]byte(raw), v) == nil
}

// list is a field of names with commas between them.
func (p params) list(name string) []string {
	return strings.FieldsFunc(p.values[name], func(r rune) bool { return r == ',' || r == ' ' })
}

// clone keeps a request's fields for the record.
func (p params) clone() map[string]string { return maps.Clone(p.values) }
