package discordapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
)

// TestBuckets does not make calls that would be refused, and makes all others.
func TestBuckets(t *testing.T) {
	now, calls := time.Unix(1795262400, 0), 0
	answer := func(http.Header) int { return http.StatusOK }
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		w.WriteHeader(answer(w.Header()))
	})
	c.buckets = newBuckets(func() time.Time { return now })
	post := func(path string) time.Duration {
		t.Helper()
		err := c.Call(t.Context(), http.MethodPost, path, Params{}, nil)
		var refused *Error
		if err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests) {
			t.Fatal(err)
		}
		if refused != nil {
			return refused.RetryAfter
		}
		return 0
	}
	expect := func(what string, got, want time.Duration, asked int) {
		t.Helper()
		if got != want || calls != asked {
			t.Errorf("%s: waits %s, want %s; %d calls, want %d", what, got, want, calls, asked)
		}
	}

	answer = func(h http.Header) int {
		h.Set("X-RateLimit-Remaining", "0")
		h.Set("X-RateLimit-Reset-After", "2.5")
		return http.StatusOK
	}
	expect("the last one", post("channels/5/messages"), 0, 1)
	answer = func(http.Header) int { return http.StatusOK }
	expect("one too many", post("channels/5/messages"), 2501*time.Millisecond, 1) // the header is rounded
	expect("another channel", post("channels/6/messages"), 0, 2)
	expect("another kind of call", post("channels/5/typing"), 0, 3)
	now = now.Add(2501 * time.Millisecond)
	expect("later", post("channels/5/messages"), 0, 4)

	c.buckets.update(http.MethodPost, "channels/5/pins", http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset-After": {"0.000"}}, nil)
	expect("a time that is rounded to nothing", post("channels/5/pins"), time.Millisecond, 4)

	answer = func(h http.Header) int {
		h.Set("Retry-After", "3")
		h.Set("X-RateLimit-Scope", "user")
		return http.StatusTooManyRequests
	}
	expect("a refusal", post("channels/5/messages"), 3*time.Second, 5)
	expect("which is heeded", post("channels/5/messages"), 3*time.Second, 5)
	answer = func(h http.Header) int {
		h.Set("Retry-After", "4")
		h.Set("X-RateLimit-Scope", "global")
		return http.StatusTooManyRequests
	}
	expect("a refusal of everything", post("channels/6/messages"), 4*time.Second, 6)
	expect("which is heeded everywhere", post("channels/7/messages"), 4*time.Second, 6)
	answer = func(http.Header) int { return http.StatusOK }
	expect("but by answers to commands", post("interactions/1/t/callback"), 0, 7)
	now = now.Add(4 * time.Second)
	expect("later", post("channels/7/messages"), 0, 8)

	answer = func(h http.Header) int {
		h.Set("X-RateLimit-Remaining", "0")
		h.Set("X-RateLimit-Reset-After", "soon")
		return http.StatusOK
	}
	expect("a limit without a time", post("channels/7/messages"), 0, 9)
	expect("is none", post("channels/7/messages"), 0, 10)
	answer = func(h http.Header) int {
		h.Set("Retry-After", "30")
		return http.StatusTooManyRequests
	}
	expect("a refusal by the proxy", post("channels/7/messages"), 30*time.Second, 11)
	expect("which is heeded everywhere", post("channels/8/messages"), 30*time.Second, 11)
	expect("also by answers to commands", post("interactions/1/t/callback"), 30*time.Second, 11)
	now = now.Add(30 * time.Second)
	answer = func(http.Header) int { return http.StatusTooManyRequests }
	expect("a refusal by the proxy without a time", post("channels/7/messages"), 0, 12)
	expect("lasts a little", post("channels/7/messages"), adapter.ForeignWait, 12)
	now = now.Add(adapter.ForeignWait)
	c.buckets.update(http.MethodPatch, "channels/7/messages/1", http.Header{}, &Error{Status: 429, Code: 30046, RetryAfter: time.Hour})
	expect("a refusal of one message", post("channels/7/messages"), 0, 13)
	for i := range 2 * maxBuckets {
		c.buckets.update(http.MethodGet, fmt.Sprintf("channels/%d", i), http.Header{"X-Ratelimit-Remaining": {"0"}}, nil)
	}
	if len(c.buckets.until) > maxBuckets {
		t.Errorf("%d buckets are remembered", len(c.buckets.until))
	}
}

func TestBucket(t *testing.T) {
	for path, want := range map[string]string{
		"channels/5/messages?after=7&limit=9":        "channels/5/messages",
		"channels/5/messages/7":                      "channels/5/messages/*",
		"channels/5/messages/7/reactions/%F0%9F/@me": "channels/5/messages/*/reactions/*/@me",
		"channels/5/messages/7/reactions/a:8/@me":    "channels/5/messages/*/reactions/*/@me",
		"guilds/5/members/7":                         "guilds/5/members/*",
	} {
		if got := bucket("GET", path); got != "GET "+want {
			t.Errorf("%s is %s", path, got)
		}
	}
	if strings.Contains(withoutSecrets("interactions/1/token/callback"), "token") {
		t.Error("the error contains a token")
	}
}
