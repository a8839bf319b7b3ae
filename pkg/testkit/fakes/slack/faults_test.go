package slack_test

import (
	"fmt"
	"testing"

	"arizuko/pkg/testkit/fakes/slack"
)

func TestFault_Answers(t *testing.T) {
	tests := []struct {
		name     string
		fault    slack.Fault
		status   int
		body     string
		accepted bool
	}{
		{"5xx before", slack.Fault{Status: 502}, 502, `{"ok":false,"error":"Bad Gateway"}` + "\n", false},
		{"5xx after", slack.Fault{Status: 500, After: true, Error: "fatal_error"}, 500, `{"ok":false,"error":"fatal_error"}` + "\n", true},
		{"an error", slack.Fault{Error: "internal_error"}, 200, `{"ok":false,"error":"internal_error"}` + "\n", false},
		{"429", slack.Fault{RetryAfter: 7}, 429, `{"ok":false,"error":"ratelimited"}` + "\n", false},
		{"dropped before", slack.Fault{Drop: true}, 0, "", false},
		{"dropped after", slack.Fault{Drop: true, After: true}, 0, "", true},
		{"raw body", slack.Fault{Body: "<html>", After: true}, 200, "<html>", true},
		{"a proxy's page", slack.Fault{Body: "<html>", Status: 503}, 503, "<html>", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, slack.Options{})
			team := r.Channel("team").ChannelID
			r.InjectFault(tt.fault)
			a := r.call("chat.postMessage", "channel", team, "text", "one")
			if a.Status != tt.status || tt.status != 0 && a.Body != tt.body {
				t.Errorf("got %d %s, want %d %s", a.Status, a.Body, tt.status, tt.body)
			}
			if tt.fault.RetryAfter != 0 && a.Header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After %s", a.Header.Get("Retry-After"))
			}
			if got := len(r.Sent()) == 1; got != tt.accepted {
				t.Errorf("carried out: %v, want %v", got, tt.accepted)
			}
			if c := r.Calls()[0]; c.Status != tt.status || c.Accepted != tt.accepted || c.Text != "one" {
				t.Errorf("recorded %+v", c)
			}
			r.must("chat.postMessage", "channel", team, "text", "two")
		})
	}
}

func TestFault_MatchesMethods(t *testing.T) {
	r := start(t, slack.Options{})
	team := r.Channel("team").ChannelID
	send := func() int { return r.call("chat.postMessage", "channel", team, "text", "x").Status }
	steps := []struct {
		faults []slack.Fault
		want   []int // of apps.connections.open, auth.test, and three messages
	}{
		{[]slack.Fault{{Method: "chat.postMessage", Times: 2, Status: 500}}, []int{200, 200, 500, 500, 200}},
		{[]slack.Fault{{Status: 500}}, []int{200, 500, 200, 200, 200}},
		{[]slack.Fault{{Method: "apps.connections.open", Status: 500}}, []int{500, 200, 200, 200, 200}},
		{[]slack.Fault{{Method: "*", Times: -1, Status: 500}}, []int{500, 500, 500, 500, 500}},
		{[]slack.Fault{{Method: "chat.postMessage", Status: 500}, {Method: "chat.postMessage", RetryAfter: 1}}, []int{200, 200, 500, 429, 200}},
	}
	for _, step := range steps {
		r.InjectFault(step.faults...)
		got := []int{r.call("apps.connections.open").Status, r.call("auth.test").Status, send(), send(), send()}
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%+v: %v, want %v", step.faults, got, step.want)
		}
		r.ClearFaults()
	}
}

func TestRateLimits_Exceeded_Refused(t *testing.T) {
	r := start(t, slack.Options{RateLimits: true})
	team, other := r.Channel("team").ChannelID, r.Channel("other").ChannelID
	limited := func(method string, allowed int, retryAfter string) {
		t.Helper()
		for range allowed {
			r.must(method, "channel", team, "text", "x")
		}
		a := r.call(method, "channel", team, "text", "x")
		if got := a.Header.Get("Retry-After"); a.Status != 429 || a.str("error") != "ratelimited" || retryAfter != "" && got != retryAfter || got == "" {
			t.Errorf("%s: %d %s, Retry-After %s", method, a.Status, a.Body, got)
		}
	}
	limited("chat.postMessage", 4, "1")
	r.must("chat.postMessage", "channel", other, "text", "x")
	limited("conversations.history", 55, "") // tier 3, and a burst
	r.must("conversations.info", "channel", team)
}
