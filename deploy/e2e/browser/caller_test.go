package browser_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// caller asks dashd over HTTP, as programs do.
type caller struct {
	t      *testing.T
	base   string
	bearer string // "" for a stranger
	http   http.Client
}

// stranger knows nothing.
func (i *instance) stranger() *caller {
	return &caller{t: i.t, base: i.url, http: http.Client{
		Timeout:       patience,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// program knows the shared secret.
func (i *instance) program() *caller {
	i.t.Helper()
	secret, err := os.ReadFile(filepath.Join(i.data, "secret"))
	if err != nil {
		i.t.Fatal(err)
	}
	c := i.stranger()
	c.bearer = strings.TrimSpace(string(secret))
	return c
}

// answer is what a request was answered with.
type answer struct {
	status int
	http.Header
	body string
}

// read decodes the body as JSON.
func read[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %.500s: %v", a.status, a.body, err)
	}
	return v
}

// kind is the kind of error in an answer, "" if it is none.
func (a answer) kind() string {
	var body struct {
		Error struct{ Kind, Message string }
	}
	if json.Unmarshal([]byte(a.body), &body) != nil || body.Error.Message == "" {
		return ""
	}
	return body.Error.Kind
}

// do sends a request with headers as name: value. Of a link the path counts.
func (c *caller) do(method, path, body string, headers ...string) answer {
	c.t.Helper()
	res := c.send(context.Background(), method, path, body, headers...)
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(content)}
}

func (c *caller) send(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.base+strings.TrimPrefix(path, c.base), strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// must makes a request that has to be answered with status.
func (c *caller) must(status int, method, path, body string, headers ...string) answer {
	c.t.Helper()
	a := c.do(method, path, body, headers...)
	if a.status != status {
		c.t.Fatalf("%s %s %.100s: %d, want %d\n%.500s", method, path, body, a.status, status, a.body)
	}
	return a
}

// post writes a message and returns its row.
func (c *caller) post(folder, topic, text string) (id int64) {
	c.t.Helper()
	body, err := json.Marshal(map[string]string{"text": text, "topic": topic})
	if err != nil {
		c.t.Fatal(err)
	}
	return read[struct{ ID int64 }](c.t, c.must(202, "POST", "/chat/"+folder+"/messages", string(body))).ID
}

// row is a message as the chat's API has it.
type row struct {
	ID         int64
	Direction  string
	Topic      string
	Sender     string
	SenderName string `json:"sender_name"`
	Content    string
	HTML       string
	Timestamp  int64
	TurnID     *int64 `json:"turn_id"`
}

// event is one of an event stream.
type event struct{ name, id, data string }

// stream is an open event stream.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

// events opens an event stream for as long as anything waits for, or until the test ends.
func (c *caller) events(path string, headers ...string) *stream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.t.Cleanup(cancel)
	res := c.send(ctx, http.MethodGet, path, "", headers...)
	c.t.Cleanup(func() { res.Body.Close() })
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		c.t.Fatalf("%s: %s %s", path, res.Status, kind)
	}
	s := &stream{c.t, bufio.NewScanner(res.Body)}
	s.lines.Buffer(nil, 2<<20)
	return s
}

// next is the next event of a name; the others are skipped. The zero value is the stream's end.
func (s *stream) next(name string) (e event) {
	s.t.Helper()
	for s.lines.Scan() {
		field, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "":
			if e.name == name {
				return e
			}
			e = event{}
		}
	}
	return event{}
}

// message is the next message of a stream.
func (s *stream) message() (m row) {
	s.t.Helper()
	e := s.next("message")
	if err := json.Unmarshal([]byte(e.data), &m); err != nil {
		s.t.Fatalf("%+v: %v", e, err)
	}
	return m
}
