package discord_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
)

func TestInvalidCalls_TenThousand_BanTheAddress(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := discord.New(discord.Options{Now: func() time.Time { return now }})
	call := func(path, token string) *httptest.ResponseRecorder {
		w, req := httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v10"+path, nil)
		req.Header.Set("Authorization", "Bot "+token)
		s.ServeHTTP(w, req)
		return w
	}
	hidden := s.Guild("Team", s.User("Alice", "alice")).Channel("hidden")
	hidden.Deny(discord.ViewChannel)
	for i := range 10_000 {
		path, token, want := "/users/@me", "wrong", http.StatusUnauthorized
		if i%2 == 1 {
			path, token, want = "/channels/"+hidden.ChannelID, s.Token(), http.StatusForbidden
		}
		if i == 5_000 {
			now = now.Add(10*time.Minute + time.Second) // they are forgotten
		}
		if got := call(path, token); got.Code != want {
			t.Fatalf("call %d: %d", i, got.Code)
		}
		call("/users/1", s.Token()) // what is not found is no invalid call
	}
	for range 5_000 {
		call("/users/@me", "wrong")
	}
	if got := call("/users/@me", s.Token()); got.Code != http.StatusOK {
		t.Fatalf("10,000 invalid calls: %d", got.Code)
	}
	call("/users/@me", "wrong")
	got := call("/users/@me", s.Token())
	if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "3600" || got.Header().Get("Via") != "" ||
		!strings.Contains(got.Body.String(), "1015") || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") {
		t.Errorf("one more: %d %v %s", got.Code, got.Header(), got.Body)
	}
	for name := range got.Header() {
		if strings.HasPrefix(name, "X-Ratelimit") {
			t.Errorf("the proxy answers with %s", name)
		}
	}
	if now = now.Add(time.Hour); call("/users/@me", s.Token()).Code != http.StatusOK {
		t.Error("still banned after an hour")
	}
}

func TestFlood_RefusesAllButInteractions(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{Now: func() time.Time { return now }})
	r.AddCommand("new", "Begin")
	given := r.general.Command(r.alice, "new", "")
	r.Flood(2500 * time.Millisecond)
	got := r.call("GET", "/users/@me", "")
	if got.Status != 429 || got.json()["retry_after"] != 2.5 || got.json()["global"] != true || got.Header.Get("X-RateLimit-Scope") != "global" ||
		got.Header.Get("Retry-After") != "3" {
		t.Errorf("%d %s %v", got.Status, got.body, got.Header)
	}
	r.must("POST", "/interactions/"+given.ID+"/"+given.Token+"/callback", `{"type":4,"data":{"content":"noted"}}`)
	now = now.Add(2500 * time.Millisecond)
	r.must("GET", "/users/@me", "")
}

func TestRateLimits_Interactions_AreNotCounted(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{RateLimits: true, Now: func() time.Time { return now }})
	r.AddCommand("new", "Begin")
	given := r.general.Command(r.alice, "new", "")
	for range 50 {
		r.must("GET", "/channels/"+r.guild.Channel("c").ChannelID, "")
	}
	if got := r.call("GET", "/users/@me", ""); got.Status != 429 {
		t.Fatalf("the fifty-first call: %d", got.Status)
	}
	r.must("POST", "/interactions/"+given.ID+"/"+given.Token+"/callback", `{"type":4,"data":{"content":"noted"}}`)
}
