package slackapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// TestTheTokenGoesToSlackAlone whatever address a message names.
func TestTheTokenGoesToSlackAlone(t *testing.T) {
	c := NewClient("http://127.0.0.1:8183/api/", "xoxb-1", "", adapter.NewCallClient())
	defer c.Close()
	for address, ours := range map[string]bool{
		"https://files.slack.com/files-pri/T1-F1/cat.jpg":       true,
		"http://127.0.0.1:8183/files-pri/T1-F1/cat.jpg":         true,
		"http://files.slack.com/files-pri/T1-F1/cat.jpg":        false,
		"https://files.slack.com.evil.example/cat.jpg":          false,
		"https://evil.example/?u=https://files.slack.com/cat":   false,
		"https://files.slack.com@evil.example/cat.jpg":          false,
		"https://127.0.0.1:8183/cat.jpg":                        false,
		"http://127.0.0.1:8184/cat.jpg":                         false,
		"file:///etc/passwd":                                    false,
		"//files.slack.com/cat.jpg":                             false,
		"":                                                      false,
		"%zz":                                                   false,
		"https://hooks.slack.com/services/T1/B1/x":              false,
		"https://files.slack.com:443@evil.example:443/cat.jpg":  false,
		"https://evil.example#@files.slack.com/files-pri/a.jpg": false,
	} {
		if got := c.owns(address); got != ours {
			t.Errorf("%s: %v", address, got)
		}
		if !ours {
			if err := c.Download(t.Context(), address, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "not on a server") {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}

func TestDownload_RedirectToALoginElsewhere_NamesTheScope(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	s := httptest.NewServer(http.RedirectHandler(other.URL+"/?redir=x", http.StatusFound))
	t.Cleanup(s.Close)
	c := NewClient(s.URL+"/api/", "xoxb-1", "", adapter.NewCallClient())
	defer c.Close()
	err := c.Download(t.Context(), s.URL+"/files-pri/T1-F1/cat.jpg", &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "files:read") || asked {
		t.Errorf("%v, asked elsewhere: %v", err, asked)
	}
}

// TestTag is found on the message that bears it, and on no other.
func TestTag(t *testing.T) {
	tag := Tag{Row: 7, Part: 1, Salt: 1_764_000_000_123}
	for _, other := range []Tag{{8, 1, 1_764_000_000_123}, {7, 0, 1_764_000_000_123}, {7, 1, 1}} {
		if tag.Is(&Posted{Metadata: other.Metadata()}) {
			t.Errorf("%+v is taken for %+v", other, tag)
		}
	}
	same := tag.Metadata()
	if !tag.Is(&Posted{Metadata: same}) {
		t.Errorf("not found in %+v", same)
	}
	same.EventType = "another_app"
	if tag.Is(&Posted{Metadata: same}) || tag.Is(&Posted{}) {
		t.Error("found where it is not")
	}
}

// TestInSomeChannel looks through all pages.
func TestInSomeChannel(t *testing.T) {
	server := fake.New(fake.Options{})
	base, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	c := NewClient(base+"/api", server.BotToken(), "", adapter.NewCallClient()) // without the slash
	defer c.Close()
	alice := server.User("Alice", "alice")
	for range pageSize + 1 {
		server.ChannelWithoutBot("foreign", alice)
	}
	for _, want := range []bool{false, true} {
		if got, err := c.InSomeChannel(t.Context()); got != want || err != nil {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
		server.Channel("zebra", alice)
	}
}

func TestMessageTS(t *testing.T) {
	for id, want := range map[string]string{
		"1764000000.000100":                     "1764000000.000100",
		"1764000000.000100:e:1764000001.000100": "1764000000.000100",
		"1764000000.000100:r:U1:👍:1.2":          "1764000000.000100",
		"m:join:U1:1764000000.000100":           "", "slash:7.8.ab": "", "": "", "1764000000": "", ".": "", "1.": "", "-1.2": "", "1.2.3": "", "1.2 ": "",
	} {
		if got := MessageTS(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}

func TestHasFile(t *testing.T) {
	m := &Posted{Files: []PostedFile{{Name: "a.txt", Size: 3}, {Name: "b.txt", Size: 4}}}
	for _, tt := range []struct {
		name string
		size int64
		has  bool
	}{{"b.txt", 4, true}, {"b.txt", 3, false}, {"c.txt", 4, false}} {
		if got := m.HasFile(tt.name, tt.size); got != tt.has {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// A page of a proxy with status 429 is about this machine, so that everything waits; Slack's own answer is about one call.
func TestDo_PageWithStatus429_HoldsTheAccount(t *testing.T) {
	for what, tt := range map[string]struct {
		kind, retryAfter, body string
		account                bool
		after                  time.Duration
	}{
		"Slack's answer":      {"application/json; charset=utf-8", "7", `{"ok":false,"error":"ratelimited"}`, false, 7 * time.Second},
		"a page":              {"text/html; charset=UTF-8", "7", "<html>error 1015</html>", true, 7 * time.Second},
		"a page, no time":     {"text/html", "", "<html>", true, adapter.ForeignWait},
		"a text, no time":     {"text/plain", "", "error code: 1015", true, adapter.ForeignWait},
		"a page, another day": {"text/html", "Wed, 21 Oct 2026 07:28:00 GMT", "<html>", true, adapter.ForeignWait},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.kind)
			if tt.retryAfter != "" {
				w.Header().Set("Retry-After", tt.retryAfter)
			}
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(tt.body))
		}))
		c := NewClient(server.URL, "xoxb-1", "", adapter.NewCallClient())
		_, _, posted := c.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("hello", false))
		_, read := c.History(t.Context(), "C1", Window{}, "")
		for _, err := range []error{posted, read} {
			if f := Failure(err); f.Class != msg.Rate || f.Account != tt.account || f.After != tt.after {
				t.Errorf("%s: %+v, want a rate limit of %s, of the account %v", what, f, tt.after, tt.account)
			}
		}
		c.Close()
		server.Close()
	}
}

// The message of a reaction is gone: there is nothing to remove, and nothing to add it to.
func TestReact_MessageGone_RemovingIsDone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":false,"error":"message_not_found"}`))
	}))
	t.Cleanup(server.Close)
	c := NewClient(server.URL, "xoxb-1", "", adapter.NewCallClient())
	t.Cleanup(c.Close)
	if err := c.React(t.Context(), "C1", "1700000000.000100", "eyes", false); err != nil {
		t.Errorf("removing: %v", err)
	}
	if err := c.React(t.Context(), "C1", "1700000000.000100", "eyes", true); Code(err) != "message_not_found" {
		t.Errorf("adding: %v", err)
	}
}
