package discord_test

import (
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
)

func TestFault_Answers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		fault    discord.Fault
		status   int
		body     string
		accepted bool
	}{
		{"page of the proxy", discord.Fault{Status: 502}, 502, "cloudflare", false},
		{"accepted, then a page", discord.Fault{Status: 504, After: true}, 504, "cloudflare", true},
		{"an error of its own", discord.Fault{Status: 403, Code: 50013, Message: "Missing Permissions"}, 403, `"code":50013`, false},
		{"revoked token", discord.Fault{Status: 401}, 401, `"code":0`, false},
		{"a limit", discord.Fault{RetryAfter: 1500 * time.Millisecond}, 429, `"retry_after":1.5`, false},
		{"a limit of one message", discord.Fault{RetryAfter: time.Second, Code: 20022}, 429, `"code":20022`, false},
		{"dropped", discord.Fault{Drop: true}, 0, "", false},
		{"accepted, then dropped", discord.Fault{Drop: true, After: true}, 0, "", true},
		{"raw body", discord.Fault{Body: "<html>"}, 200, "<html>", false},
		{"accepted, then raw body", discord.Fault{Body: "{", After: true}, 200, "{", true},
		{"slow", discord.Fault{Delay: time.Millisecond}, 200, `"content":"x"`, true},
		{"slow to answer", discord.Fault{Delay: time.Millisecond, After: true}, 200, `"content":"x"`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, discord.Options{})
			tt.fault.Route = discord.CreateMessage
			r.InjectFault(tt.fault)
			r.must("GET", "/users/@me", "") // another route
			got := r.call("POST", messages(r.general), content("x"))
			if got.Status != tt.status || !strings.Contains(got.body, tt.body) && tt.status != 0 {
				t.Errorf("got %d %s", got.Status, got.body)
			}
			call := r.Calls()[1]
			if sent := len(r.general.Messages()) == 1; sent != tt.accepted || call.Accepted != tt.accepted || call.Status != tt.status {
				t.Errorf("sent: %v; recorded %+v", sent, call)
			}
			r.say(r.general, "the fault is over")
		})
	}
}

func TestRateLimits_SixthMessage_Refused(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{RateLimits: true, Now: func() time.Time { return now }})
	for i := range 5 {
		got := r.must("POST", messages(r.general), content("x"))
		if left := got.Header.Get("X-RateLimit-Remaining"); left != string(rune('4'-i)) || got.Header.Get("X-RateLimit-Limit") != "5" {
			t.Errorf("message %d: %s left", i, left)
		}
	}
	got := r.call("POST", messages(r.general), content("x"))
	if got.Status != 429 || got.json()["retry_after"] != 5.0 || got.json()["global"] != false || got.Header.Get("Retry-After") != "5" {
		t.Errorf("the sixth: %d %s %v", got.Status, got.body, got.Header)
	}
	other := r.guild.Channel("other")
	r.say(other, "another channel")
	now = now.Add(5 * time.Second)
	r.say(r.general, "later")
	for i := range 49 {
		r.must("GET", "/channels/"+r.guild.Channel("c").ChannelID, "")
		if i == 48 {
			got = r.call("GET", "/users/@me", "")
		}
	}
	if got.Status != 429 || got.json()["global"] != true || got.Header.Get("X-RateLimit-Global") != "true" || got.Header.Get("X-RateLimit-Scope") != "global" {
		t.Errorf("above the limit: %d %s %v", got.Status, got.body, got.Header)
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
