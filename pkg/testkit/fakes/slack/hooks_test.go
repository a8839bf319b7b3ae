package slack_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/slack"
)

// app is an app that receives the Events API.
type app struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int // of the next events; 200 after them
	got     []post
}

type post struct {
	header http.Header
	body   string
}

func listen(t *testing.T) *app {
	a := &app{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct{ Type, Challenge string }
		if json.Unmarshal(body, &asked) == nil && asked.Type == "url_verification" {
			_, _ = io.WriteString(w, asked.Challenge)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.got = append(a.got, post{r.Header, string(body)})
		if len(a.answers) > 0 {
			w.WriteHeader(a.answers[0])
			a.answers = a.answers[1:]
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// signature is Slack's signature of a post.
func signature(p post, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, "v0:"+p.header.Get("X-Slack-Request-Timestamp")+":"+p.body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

func TestEventsAPI_FailedPosts_AreRetried(t *testing.T) {
	r, a := start(t, slack.Options{RetryDelays: []time.Duration{0, 10 * time.Millisecond, time.Second}}), listen(t)
	alice := r.User("Alice", "alice")
	dm := r.DM(alice)
	w := r.dial()
	if err := r.SetEventsURL(r.ctx, a.URL); err != nil {
		t.Fatal(err)
	}
	if frame := w.read(); frame != nil {
		t.Errorf("the socket is open: %v", frame)
	}
	r.refuse("socket_mode_not_enabled", "apps.connections.open")
	a.answers = []int{500, 503}
	dm.Say(alice, "one")
	if err := r.WaitConfirmed(r.ctx); err != nil || len(a.got) != 3 {
		t.Fatalf("%d posts, %v", len(a.got), err)
	}
	for i, p := range a.got {
		num, reason := p.header.Get("X-Slack-Retry-Num"), p.header.Get("X-Slack-Retry-Reason")
		if want := []string{"", "1", "2"}[i]; num != want || (reason == "http_error") != (i > 0) {
			t.Errorf("attempt %d has %q %q", i, num, reason)
		}
		if p.header.Get("X-Slack-Signature") != signature(p, r.SigningSecret()) || p.header.Get("Content-Type") != "application/json" {
			t.Errorf("signed %v", p.header)
		}
		var body map[string]any
		if err := json.Unmarshal([]byte(p.body), &body); err != nil {
			t.Fatal(err)
		}
		fakeservertest.Subset(t, body, `{"type": "event_callback", "event": {"type": "message", "text": "one"}}`)
	}
	a.answers = []int{500, 500, 500, 500}
	dm.Say(alice, "two")
	if err := r.WaitConfirmed(r.ctx); err != nil || len(a.got) != 7 || r.Undelivered() != 1 {
		t.Errorf("%d posts, %d lost, %v", len(a.got), r.Undelivered(), err)
	}
	r.SetReachable(false)
	dm.Say(alice, "three")
	r.SetReachable(true)
	if err := r.WaitConfirmed(r.ctx); err != nil || len(a.got) != 8 {
		t.Errorf("%d posts, %v", len(a.got), err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	dm.Say(alice, "four")
	if _, err := r.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitConfirmed(r.ctx); err != nil || len(a.got) != 9 {
		t.Errorf("%d posts, %v", len(a.got), err)
	}
}

func TestSetEventsURL_Challenge(t *testing.T) {
	r := start(t, slack.Options{})
	for name, handler := range map[string]http.HandlerFunc{
		"says something else": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"refuses":             func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
	} {
		site := httptest.NewServer(handler)
		if err := r.SetEventsURL(r.ctx, site.URL); err == nil {
			t.Errorf("one that %s passes", name)
		}
		site.Close()
		if err := r.SetEventsURL(r.ctx, site.URL); err == nil {
			t.Error("an unreachable URL passes")
		}
	}
}
