package anthropic_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/anthropic"
)

func TestFault_Answers(t *testing.T) {
	tests := []struct {
		name     string
		fault    anthropic.Fault
		status   int
		body     string // part of it
		accepted bool
	}{
		{"overload", anthropic.Fault{Status: 529}, 529, `"Overloaded"`, false},
		{"with a description", anthropic.Fault{Status: 500, Description: "oops"}, 500, `"message":"oops","type":"api_error"`, false},
		{"rate limit", anthropic.Fault{RetryAfter: 7}, 429, `"rate_limit_error"`, false},
		{"usage limit", anthropic.Fault{ResetAt: time.Unix(2e9, 0)}, 429, `"rate_limit_error"`, false},
		{"dropped", anthropic.Fault{Drop: true}, 0, "", false},
		{"dropped after", anthropic.Fault{Drop: true, After: true}, 0, "", true},
		{"error after", anthropic.Fault{Status: 500, After: true}, 500, `"api_error"`, true},
		{"raw body", anthropic.Fault{Body: "<html>"}, 200, "<html>", false},
		{"a proxy's page", anthropic.Fault{Body: "<html>", Status: 503}, 503, "<html>", false},
		{"late", anthropic.Fault{Delay: time.Millisecond}, 200, `"one"`, true},
		{"late after", anthropic.Fault{Delay: time.Millisecond, After: true}, 200, `"one"`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t)
			r.InjectFault(tt.fault)
			a := r.say("say one")
			if a.Status != tt.status || !strings.Contains(a.Body, tt.body) {
				t.Errorf("got %d %s, want %d %s", a.Status, a.Body, tt.status, tt.body)
			}
			if got := a.Header.Get("retry-after"); tt.fault.RetryAfter == 7 && got != "7" || tt.fault.RetryAfter == 0 && got != "" {
				t.Errorf("retry-after %q", got)
			}
			if got := a.Header.Get("anthropic-ratelimit-unified-reset"); (got == "2000000000") == tt.fault.ResetAt.IsZero() {
				t.Errorf("reset %q", got)
			}
			if err := r.Until(r.ctx, func() bool { return !r.Calls()[0].Open }); err != nil {
				t.Fatal(err)
			}
			if c := r.Calls()[0]; c.Accepted != tt.accepted || c.Status != tt.status || c.Broken != (tt.status == 0) {
				t.Errorf("recorded %+v", c)
			}
			if got := r.say("say two").text(t); got != "two" {
				t.Errorf("then %q", got)
			}
		})
	}
}

// A fault After breaks a stream in the middle of its content.
func TestFault_InStream(t *testing.T) {
	for name, tt := range map[string]struct {
		fault anthropic.Fault
		want  string
	}{
		"dropped": {anthropic.Fault{Drop: true, After: true}, "message_start ping content_block_start content_block_delta"},
		"error":   {anthropic.Fault{Status: 529, After: true}, "message_start ping content_block_start content_block_delta error"},
		"late": {anthropic.Fault{Delay: time.Millisecond, After: true},
			"message_start ping content_block_start content_block_delta content_block_stop message_delta message_stop"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			r.InjectFault(tt.fault)
			a := r.stream("say one")
			events := a.events(t)
			if got := names(events); got != tt.want || a.Broken != tt.fault.Drop || a.Status != 200 {
				t.Errorf("got %s, broken %v", got, a.Broken)
			}
			if last := events[len(events)-1]; last.Name == "error" && last.Data["error"].(map[string]any)["type"] != "overloaded_error" {
				t.Errorf("got %v", last)
			}
		})
	}
}

func TestFault_MatchesMethods(t *testing.T) {
	r := start(t)
	statuses := func() [3]int {
		return [3]int{r.request(r.ctx, "GET", "/", "").Status, r.say("x").Status, r.say("x").Status}
	}
	steps := []struct {
		faults []anthropic.Fault
		want   [3]int
	}{
		{[]anthropic.Fault{{Status: 500}}, [3]int{500, 200, 200}},
		{[]anthropic.Fault{{Method: "*", Times: 2, Status: 500}}, [3]int{500, 500, 200}},
		{[]anthropic.Fault{{Method: anthropic.MethodMessages, Status: 500}, {Status: 529}}, [3]int{529, 500, 200}},
		{[]anthropic.Fault{{Times: -1, Status: 500}}, [3]int{500, 500, 500}},
		{nil, [3]int{500, 500, 500}},
	}
	for i, step := range steps {
		r.InjectFault(step.faults...)
		if got := statuses(); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	r.ClearFaults()
	if got := statuses(); got != [3]int{404, 200, 200} {
		t.Errorf("after ClearFaults: %v", got)
	}
}

func TestCall_ClientGone_IsBroken(t *testing.T) {
	r := start(t)
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan answer)
	go func() { done <- r.request(ctx, "POST", "/v1/messages", conversation("slow 600 say late")) }()
	if _, err := r.Wait(r.ctx, func(c anthropic.Call) bool { return c.Accepted }); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	if _, err := r.Wait(r.ctx, func(c anthropic.Call) bool { return c.Broken && !c.Open && c.Status == 0 }); err != nil {
		t.Errorf("%v: %+v", err, r.Calls())
	}
	if _, err := r.Wait(ctx, func(anthropic.Call) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
