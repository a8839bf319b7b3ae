package slack_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/slack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server and a plain HTTP client.
type fixture struct {
	*slack.Server
	t      *testing.T
	base   string
	client *http.Client
	ctx    context.Context //nolint:containedctx // of one test
}

func start(t *testing.T, o slack.Options) *fixture {
	if o.RetryDelays == nil { // events wait for the test to connect
		o.RetryDelays = slices.Repeat([]time.Duration{20 * time.Millisecond}, 100)
	}
	t.Helper()
	s := slack.New(o)
	base, client, ctx := fakeservertest.Serve(t, s)
	return &fixture{Server: s, t: t, base: base, client: client, ctx: ctx}
}

// answer is an answer of the server. Status 0 is a broken connection.
type answer struct {
	Status int
	Body   string
	Header http.Header
	Fields map[string]any
}

func (a answer) ok() bool { return a.Fields["ok"] == true }

func (a answer) str(name string) string {
	text, _ := a.Fields[name].(string)
	return text
}

func (r *fixture) do(req *http.Request) answer {
	r.t.Helper()
	got := fakeservertest.Do(r.t, r.client, req)
	a := answer{Status: got.Status, Body: got.Body, Header: got.Header}
	_ = json.Unmarshal([]byte(got.Body), &a.Fields) // a raw body is not JSON
	return a
}

func (r *fixture) request(method, address, token, contentType string, body io.Reader) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.ctx, method, address, body)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return r.do(req)
}

// with posts a form with a token; fields come as name, value, name, value.
func (r *fixture) with(token, method string, fields ...any) answer {
	r.t.Helper()
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i].(string), text(fields[i+1]))
	}
	return r.request(http.MethodPost, r.base+"/api/"+method, token, "application/x-www-form-urlencoded", strings.NewReader(values.Encode()))
}

// call is with the token that the method requires.
func (r *fixture) call(method string, fields ...any) answer {
	r.t.Helper()
	token := r.BotToken()
	if method == "apps.connections.open" {
		token = r.AppToken()
	}
	return r.with(token, method, fields...)
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	}
	raw, _ := json.Marshal(v)
	return string(raw)
}

// must is a call that must be accepted.
func (r *fixture) must(method string, fields ...any) answer {
	r.t.Helper()
	a := r.call(method, fields...)
	if !a.ok() {
		r.t.Fatalf("%s: got %d %s, want it accepted", method, a.Status, a.Body)
	}
	return a
}

// refuse is a call that must be refused with an error.
func (r *fixture) refuse(code, method string, fields ...any) {
	r.t.Helper()
	if a := r.call(method, fields...); a.ok() || a.str("error") != code {
		r.t.Errorf("%s %v: got %d %s, want %s", method, fields, a.Status, a.Body, code)
	}
}

// wire is a Socket Mode connection.
type wire struct {
	r    *fixture
	conn *websocket.Conn
}

func (r *fixture) dial() *wire {
	r.t.Helper()
	conn, resp, err := websocket.Dial(r.ctx, r.must("apps.connections.open").str("url"), nil)
	if err != nil {
		r.t.Fatalf("%v (%v)", err, resp)
	}
	r.t.Cleanup(func() { _ = conn.CloseNow() })
	w := &wire{r: r, conn: conn}
	if hello := w.read(); hello["type"] != "hello" {
		r.t.Fatalf("got %v, want hello", hello)
	}
	return w
}

// read is the next frame; nil for a closed connection.
func (w *wire) read() map[string]any {
	w.r.t.Helper()
	_, raw, err := w.conn.Read(w.r.ctx)
	if err != nil {
		if w.r.ctx.Err() != nil {
			w.r.t.Fatal("no frame")
		}
		return nil
	}
	var frame map[string]any
	if err := json.Unmarshal(raw, &frame); err != nil {
		w.r.t.Fatalf("%v in %s", err, raw)
	}
	return frame
}

func (w *wire) ack(envelope any, payload any) {
	w.r.t.Helper()
	answer := map[string]any{"envelope_id": envelope}
	if payload != nil {
		answer["payload"] = payload
	}
	raw, _ := json.Marshal(answer)
	if err := w.conn.Write(w.r.ctx, websocket.MessageText, raw); err != nil {
		w.r.t.Fatal(err)
	}
}

// events reads n events, answers them, and returns them without their envelopes.
func (w *wire) events(n int) []map[string]any {
	w.r.t.Helper()
	var all []map[string]any
	for range n {
		frame := w.read()
		if frame["type"] != "events_api" {
			w.r.t.Fatalf("got %v, want an event", frame)
		}
		w.ack(frame["envelope_id"], nil)
		all = append(all, frame["payload"].(map[string]any)["event"].(map[string]any))
	}
	return all
}

// event reads the next event, which must be the only one.
func (w *wire) event(want string) map[string]any {
	w.r.t.Helper()
	event := w.events(1)[0]
	fakeservertest.Subset(w.r.t, event, want)
	if err := w.r.WaitConfirmed(w.r.ctx); err != nil {
		w.r.t.Fatalf("more than one event: %v", err)
	}
	return event
}
