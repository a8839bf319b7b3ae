package browser_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// caller is an HTTP client of dashd.
type caller struct {
	t      testing.TB
	base   string
	bearer string // "" for an anonymous client
	http   http.Client
}

// anonymous is a client without a login.
func (i *instance) anonymous() *caller {
	return &caller{t: i.T, base: i.url, http: http.Client{
		Timeout:       maxRequest,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// program is a client with the shared secret.
func (i *instance) program() *caller {
	i.T.Helper()
	secret, err := i.Instance.Secret()
	if err != nil {
		i.T.Fatal(err)
	}
	c := i.anonymous()
	c.bearer = secret
	return c
}

// answer is an HTTP response.
type answer struct {
	status int
	http.Header
	body string
}

// read decodes the body as JSON.
func read[T any](t testing.TB, a answer) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %.500s: %v", a.status, a.body, err)
	}
	return v
}

// kind is the kind of error in an answer, "" if there is none.
func (a answer) kind() string {
	var body struct {
		Error struct{ Kind, Message string }
	}
	if json.Unmarshal([]byte(a.body), &body) != nil || body.Error.Message == "" {
		return ""
	}
	return body.Error.Kind
}

// do sends a request with headers as name: value. path may be a whole link.
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

// must sends a request and fails the test unless the answer has that status.
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

// row is a message of the chat's API.
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
	t     testing.TB
	lines *bufio.Scanner
}

// events opens an event stream, which ends after maxRequest or with the test.
func (c *caller) events(path string, headers ...string) *stream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxRequest)
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

// next returns the next event of a name and skips others. The zero value is the end of the stream.
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

// message returns the next message of a stream.
func (s *stream) message() (m row) {
	s.t.Helper()
	e := s.next("message")
	if err := json.Unmarshal([]byte(e.data), &m); err != nil {
		s.t.Fatalf("%+v: %v", e, err)
	}
	return m
}
