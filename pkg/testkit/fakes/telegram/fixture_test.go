package telegram_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/telegram"
)

// fixture is a server and a plain HTTP client.
type fixture struct {
	*telegram.Server
	t      *testing.T
	base   string
	client *http.Client
	ctx    context.Context //nolint:containedctx // of one test
}

func start(t *testing.T, o telegram.Options) *fixture {
	t.Helper()
	s := telegram.New(o)
	base, client, ctx := fakeservertest.Serve(t, s)
	return &fixture{Server: s, t: t, base: base, client: client, ctx: ctx}
}

// answer is an answer of the server. Status 0 is a broken connection.
type answer struct {
	Status      int             `json:"-"`
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		MigrateTo  int64 `json:"migrate_to_chat_id"`
		RetryAfter int   `json:"retry_after"`
	} `json:"parameters"`
	body string
}

func (r *fixture) do(req *http.Request) answer {
	r.t.Helper()
	got := fakeservertest.Do(r.t, r.client, req)
	a := answer{Status: got.Status, body: got.Body}
	_ = json.Unmarshal([]byte(got.Body), &a) // a raw body is not JSON
	return a
}

func (r *fixture) request(method, path string, body io.Reader, contentType string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.ctx, method, r.base+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return r.do(req)
}

// call posts a form; fields come as name, value, name, value.
func (r *fixture) call(method string, fields ...any) answer {
	r.t.Helper()
	return r.request(http.MethodPost, "/bot"+r.Token()+"/"+method, strings.NewReader(form(fields...).Encode()), "application/x-www-form-urlencoded")
}

func form(fields ...any) url.Values {
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i].(string), text(fields[i+1]))
	}
	return values
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	raw, _ := json.Marshal(v)
	return string(raw)
}

// upload posts a multipart form with files by field.
func (r *fixture) upload(method string, files map[string][]byte, fields ...any) answer {
	r.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		_ = form.WriteField(fields[i].(string), text(fields[i+1]))
	}
	for name, data := range files {
		part, err := form.CreateFormFile(name, name+".bin")
		if err != nil {
			r.t.Fatal(err)
		}
		_, _ = part.Write(data)
	}
	_ = form.Close()
	return r.request(http.MethodPost, "/bot"+r.Token()+"/"+method, &body, form.FormDataContentType())
}

// must is a call that must be accepted. The result is decoded into v, unless that is nil.
func (r *fixture) must(v any, method string, fields ...any) {
	r.t.Helper()
	r.accepted(r.call(method, fields...), v)
}

func (r *fixture) accepted(a answer, v any) {
	r.t.Helper()
	if a.Status != http.StatusOK || !a.OK {
		r.t.Fatalf("got %d %s, want it accepted", a.Status, a.body)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(a.Result, v); err != nil {
		r.t.Fatalf("%v in %s", err, a.Result)
	}
}

// refuse is a call that must be refused.
func (r *fixture) refuse(status int, description, method string, fields ...any) answer {
	r.t.Helper()
	return r.refused(r.call(method, fields...), status, description)
}

func (r *fixture) refused(a answer, status int, description string) answer {
	r.t.Helper()
	if a.Status != status || a.OK || a.Code != status || a.Description != description {
		r.t.Errorf("got %d %s\nwant %d %q", a.Status, a.body, status, description)
	}
	return a
}

// updates are the next updates, which it confirms.
func (r *fixture) updates() []map[string]any {
	r.t.Helper()
	var batch []map[string]any
	r.must(&batch, "getUpdates")
	last := 0.0
	for _, u := range batch {
		last = max(last, u["update_id"].(float64))
	}
	if len(batch) > 0 {
		r.call("getUpdates", "offset", int64(last)+1)
	}
	return batch
}

// event is the only pending update, without its id, which must be of a kind.
func (r *fixture) event(kind string) map[string]any {
	r.t.Helper()
	batch := r.updates()
	if len(batch) != 1 {
		r.t.Fatalf("%d updates pending, want one %s: %v", len(batch), kind, batch)
	}
	event, ok := batch[0][kind].(map[string]any)
	if !ok || len(batch[0]) != 2 {
		r.t.Fatalf("got %v, want %s", batch[0], kind)
	}
	return event
}
