package anthropic_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
)

// timeout is how long a test waits for an event.
const timeout = 10 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server and a plain HTTP client.
type fixture struct {
	*anthropic.Server
	t      *testing.T
	base   string
	client *http.Client
	ctx    context.Context //nolint:containedctx // of one test
}

func start(t *testing.T) *fixture {
	t.Helper()
	s := anthropic.New(anthropic.Options{})
	base, client, ctx := fakeservertest.Serve(t, s)
	return &fixture{Server: s, t: t, base: base, client: client, ctx: ctx}
}

// answer is an answer of the server. Status 0 is a broken connection.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Broken bool // in the middle of the body
}

// request is a valid call with other headers, given as name and value; an empty value removes one.
func (r *fixture) request(ctx context.Context, method, path, body string, headers ...string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("x-api-key", r.Key())
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("content-type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Del(headers[i])
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := r.client.Do(req)
	if err != nil {
		if r.ctx.Err() != nil {
			r.t.Fatal(err)
		}
		return answer{Broken: true}
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return answer{Status: resp.StatusCode, Header: resp.Header, Body: string(content), Broken: err != nil}
}

func (r *fixture) post(path, body string, headers ...string) answer {
	r.t.Helper()
	return r.request(r.ctx, http.MethodPost, path, body, headers...)
}

// say calls messages with one text of the user.
func (r *fixture) say(text string) answer {
	r.t.Helper()
	return r.post("/v1/messages", conversation(text))
}

// stream is say for a stream.
func (r *fixture) stream(text string) answer {
	r.t.Helper()
	return r.post("/v1/messages", strings.Replace(conversation(text), "{", `{"stream":true,`, 1))
}

// conversation is the body of a request: the user's texts with the model's between them.
func conversation(texts ...string) string {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var messages []message
	for i, text := range texts {
		messages = append(messages, message{[]string{"user", "assistant"}[i%2], text})
	}
	body, err := json.Marshal(map[string]any{"model": "claude-fake-1", "max_tokens": 100, "messages": messages})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// text is the text of a whole message.
func (a answer) text(t *testing.T) string {
	t.Helper()
	var m struct {
		Content []struct{ Type, Text string }
	}
	if err := json.Unmarshal([]byte(a.Body), &m); err != nil || a.Status != 200 || len(m.Content) != 1 || m.Content[0].Type != "text" {
		t.Fatalf("no text: %d %s %v", a.Status, a.Body, err)
	}
	return m.Content[0].Text
}

type event struct {
	Name string
	Data map[string]any
}

// events are the events of a stream, which must all be complete.
func (a answer) events(t *testing.T) (all []event) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(a.Body))
	for lines.Scan() {
		name, ok := strings.CutPrefix(lines.Text(), "event: ")
		if !ok || !lines.Scan() {
			t.Fatalf("no event: %q", lines.Text())
		}
		var data map[string]any
		if err := json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &data); err != nil {
			t.Fatalf("data %q: %v", lines.Text(), err)
		}
		if data["type"] != name {
			t.Errorf("event %s has data of %v", name, data["type"])
		}
		if !lines.Scan() || lines.Text() != "" {
			t.Errorf("no blank line after %s", name)
		}
		all = append(all, event{name, data})
	}
	return all
}

func names(events []event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Name)
	}
	return strings.Join(all, " ")
}
