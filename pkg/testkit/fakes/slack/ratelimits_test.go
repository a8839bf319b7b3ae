package slack_test

import (
	"testing"

	"arizuko/pkg/testkit/fakes/slack"
)

func TestRateLimits_BurstOfPosts_Refused(t *testing.T) {
	r := start(t, slack.Options{RateLimits: true})
	team, other := r.Channel("team").ChannelID, r.Channel("other").ChannelID
	for range 4 {
		r.must("chat.postMessage", "channel", team, "text", "x")
	}
	a := r.call("chat.postMessage", "channel", team, "text", "x")
	if a.Status != 429 || a.str("error") != "ratelimited" || a.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d %s, Retry-After %s", a.Status, a.Body, a.Header.Get("Retry-After"))
	}
	r.must("chat.postMessage", "channel", other, "text", "x")
	if n := len(r.Sent()); n != 5 {
		t.Errorf("%d accepted", n)
	}
}

func TestRateLimits_OfMethods_ArePerToken(t *testing.T) {
	r := start(t, slack.Options{RateLimits: true, RateScale: 0.1})
	team := r.Channel("team").ChannelID
	for range 10 { // a tenth of tier 3, and a burst
		r.must("conversations.history", "channel", team)
	}
	a := r.call("conversations.history", "channel", team)
	if a.Status != 429 || a.str("error") != "ratelimited" || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, Retry-After %s", a.Status, a.Body, a.Header.Get("Retry-After"))
	}
	r.must("conversations.info", "channel", team)
}

func TestDistributedApp_ReadsOneShortPageAMinute(t *testing.T) {
	r := start(t, slack.Options{Distributed: true})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	for range 20 {
		team.Say(alice, "x")
	}
	a := r.must("conversations.history", "channel", team.ChannelID, "limit", "200")
	if n := len(a.Fields["messages"].([]any)); n != 15 || a.Fields["has_more"] != true {
		t.Errorf("%d messages: %v", n, a.Fields["has_more"])
	}
	if a := r.call("conversations.history", "channel", team.ChannelID); a.Status != 429 {
		t.Errorf("the second page: %d %s", a.Status, a.Body)
	}
	r.must("conversations.info", "channel", team.ChannelID)
}
