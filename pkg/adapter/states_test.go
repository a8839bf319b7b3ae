package adapter

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	second = int64(1000) // in unix ms
	noon   = 10_000_000 * second
)

// ordinary are the conditions of a row that was queued a minute ago, on a platform that answers and can
// mark parts.
func ordinary(change ...func(*conditions)) conditions {
	c := conditions{now: noon, queuedAt: noon - 60*second, maxAge: 24 * time.Hour, markable: true, mayCall: true, answers: true}
	for _, f := range change {
		f(&c)
	}
	return c
}

func old(c *conditions)         { c.queuedAt = c.now - c.maxAge.Milliseconds() - 1 }
func shutOut(c *conditions)     { c.mayCall, c.outFor = false, time.Hour }
func silent(c *conditions)      { c.answers, c.outFor = false, time.Hour }
func justSilent(c *conditions)  { c.answers, c.outFor = false, time.Second }
func searching(c *conditions)   { c.searchable = true }
func unmarkable(c *conditions)  { c.markable = false }
func repeating(c *conditions)   { c.repeatable = true }
func unrendered(c *conditions)  { c.renderErr = "no such emoji" }
func startedHere(c *conditions) { c.started = true }
func waitOver(c *conditions)    { c.waited = true }

func TestNext_EachState_HasItsStep(t *testing.T) {
	fresh := store.Delivery{State: msg.OutQueued}
	waiting := store.Delivery{State: msg.OutQueued, ErrorClass: msg.Transient, Error: "502", Attempts: 4, NotBefore: noon + 5*second}
	doubt := store.Delivery{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "lost", Attempts: 1}
	crashed := store.Delivery{State: msg.OutSending}
	tests := []struct {
		name string
		part store.Delivery
		c    conditions
		want action
		wait time.Duration
		end  string // state, class and error of a part that ends
	}{
		{"fresh", fresh, ordinary(), doSend, 0, ""},
		{"fresh, shut out", fresh, ordinary(shutOut), doPass, 0, ""},
		{"fresh, not connected", fresh, ordinary(silent), doSend, 0, ""},
		{"fresh, old", fresh, ordinary(old), doSend, 0, ""},
		{"fresh, old, shut out", fresh, ordinary(old, shutOut), doEnd, 0, "failed expired not delivered within 24h0m0s: the platform was out of reach"},
		{"fresh, not rendered", fresh, ordinary(unrendered), doEnd, 0, "failed permanent no such emoji"},
		{"begun here", crashed, ordinary(startedHere), doSend, 0, ""},
		{"begun here, not rendered", crashed, ordinary(startedHere, unrendered), doEnd, 0, "failed permanent no such emoji"},
		{"waiting", waiting, ordinary(), doWait, 5 * time.Second, ""},
		{"waited", waiting, ordinary(waitOver), doSend, 0, ""},
		{"waiting, old, shut out", waiting, ordinary(old, shutOut), doEnd, 0, "failed expired not delivered within 24h0m0s: 502"},
		{"clock set back", store.Delivery{State: msg.OutQueued, ErrorClass: msg.Auth, NotBefore: noon + 86400*second}, ordinary(), doWait, authPause, ""},
		{"clock set back, retried", store.Delivery{State: msg.OutQueued, ErrorClass: msg.Transient, Attempts: 3, NotBefore: noon + 7200*second}, ordinary(), doWait, 4 * time.Second, ""},
		{"clock set back, not reached", store.Delivery{State: msg.OutQueued, ErrorClass: msg.Transient, NotBefore: noon + 7200*second}, ordinary(), doWait, time.Second, ""},
		{"clock set back, doubt", store.Delivery{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Attempts: 1, NotBefore: noon + 7200*second}, ordinary(), doWait, 10 * time.Second, ""},
		{"clock set back, third copy", store.Delivery{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Attempts: 3, NotBefore: noon + 7200*second}, ordinary(), doWait, 5 * time.Minute, ""},
		{"clock set back, asked for", store.Delivery{State: msg.OutQueued, ErrorClass: msg.Rate, NotBefore: noon + 900000*second}, ordinary(), doWait, maxWait, ""},
		{"doubt", doubt, ordinary(), doMark, 0, ""},
		{"doubt, searchable", doubt, ordinary(searching), doSearch, 0, ""},
		{"doubt, repeatable", doubt, ordinary(repeating), doSend, 0, ""},
		{"doubt, no way", doubt, ordinary(unmarkable), doEnd, 0, "ambiguous ambiguous lost"},
		{"doubt, not rendered", doubt, ordinary(unrendered), doEnd, 0, "ambiguous ambiguous lost"},
		{"doubt, not connected", doubt, ordinary(silent), doHold, 0, ""},
		{"doubt, not connected, searchable", doubt, ordinary(silent, searching), doSearch, 0, ""},
		{"doubt, shut out", doubt, ordinary(shutOut), doPass, 0, ""},
		{"doubt, not connected, old", doubt, ordinary(silent, old), doEnd, 0, "failed expired not delivered within 24h0m0s: lost"},
		{"doubt, clock just set", doubt, ordinary(justSilent, old), doHold, 0, ""},
		{"crash", crashed, ordinary(), doMark, 0, ""},
		{"crash, searchable", crashed, ordinary(searching), doSearch, 0, ""},
		{"crash, repeatable", crashed, ordinary(repeating), doSend, 0, ""},
		{"crash, no way", crashed, ordinary(unmarkable), doEnd, 0, "ambiguous ambiguous " + crashedRecord},
	}
	for _, tt := range tests {
		got := next(tt.part, tt.c)
		end := ""
		if got.do == doEnd {
			end = fmt.Sprintf("%s %s %s", got.part.State, got.part.ErrorClass, got.part.Error)
		}
		if got.do != tt.want || got.wait != tt.wait || end != tt.end {
			t.Errorf("%s: %d %v %q, want %d %v %q", tt.name, got.do, got.wait, end, tt.want, tt.wait, tt.end)
		}
	}
}

func TestAfterSend_EachResult_HasItsState(t *testing.T) {
	lost := store.Delivery{State: msg.OutSending, ErrorClass: msg.Ambiguous, Error: markedRecord, Attempts: 1}
	unsent := &Failure{Class: msg.Transient, Err: fmt.Errorf("dial: %w", ErrUnsent)}
	type d = store.Delivery
	at := func(after time.Duration) int64 { return noon + after.Milliseconds() }
	tests := []struct {
		name   string
		part   d
		c      conditions
		copied bool
		err    error
		want   d
	}{
		{"sent", d{Attempts: 2, ErrorClass: msg.Transient, Error: "x", NotBefore: 7}, ordinary(), false, nil, d{State: msg.OutSent, PlatformID: "id", Attempts: 2}},
		{"copy sent", lost, ordinary(), true, nil, d{State: msg.OutSent, PlatformID: "id", Error: markedRecord, Attempts: 1}},
		{"copy sent, with a remark", lost, ordinary(), true, &Remark{Text: "plain"}, d{State: msg.OutSent, PlatformID: "id", Error: markedRecord + "; plain", Attempts: 1}},
		{"repeated", lost, ordinary(repeating), false, nil, d{State: msg.OutSent, PlatformID: "id", Attempts: 1}},
		{"permanent", d{}, ordinary(), false, failure(msg.Permanent, 0), d{State: msg.OutFailed, ErrorClass: msg.Permanent, Error: "why"}},
		{"wrapped", d{}, ordinary(), false, fmt.Errorf("post: %w", failure(msg.Permanent, 0)), d{State: msg.OutFailed, ErrorClass: msg.Permanent, Error: "why"}},
		{"of an unknown class", d{}, ordinary(unmarkable), false, failure("strange", 0), d{State: msg.OutAmbiguous, ErrorClass: msg.Ambiguous, Error: "why"}},
		{"of a class of our own", d{}, ordinary(unmarkable), false, failure(msg.Expired, 0), d{State: msg.OutAmbiguous, ErrorClass: msg.Ambiguous, Error: "why"}},
		{"empty", d{}, ordinary(unmarkable), false, &Failure{}, d{State: msg.OutAmbiguous, ErrorClass: msg.Ambiguous, Error: "why"}},
		{"copy permanent", lost, ordinary(), true, failure(msg.Permanent, 0), d{State: msg.OutFailed, ErrorClass: msg.Permanent, Error: "why", Attempts: 1}},
		{"rate", d{}, ordinary(), false, failure(msg.Rate, time.Hour), d{State: msg.OutQueued, ErrorClass: msg.Rate, Error: "why", NotBefore: at(time.Hour)}},
		{"copy rate", lost, ordinary(), true, failure(msg.Rate, time.Hour), d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(time.Hour), Attempts: 1}},
		{"auth", d{}, ordinary(), false, failure(msg.Auth, time.Hour), d{State: msg.OutQueued, ErrorClass: msg.Auth, Error: "why", NotBefore: at(authPause)}},
		{"not reached", d{Attempts: 3}, ordinary(), false, unsent, d{State: msg.OutQueued, ErrorClass: msg.Transient, Error: "why", NotBefore: at(firstPause), Attempts: 3}},
		{"not reached, old", d{Attempts: 3}, ordinary(old), false, unsent,
			d{State: msg.OutFailed, ErrorClass: msg.Expired, Error: "not delivered within 24h0m0s: why", Attempts: 3}},
		{"transient", d{Attempts: 3}, ordinary(), false, failure(msg.Transient, 0), d{State: msg.OutQueued, ErrorClass: msg.Transient, Error: "why", NotBefore: at(8 * time.Second), Attempts: 4}},
		{"transient, not connected", d{Attempts: 3}, ordinary(silent), false, failure(msg.Transient, 0), d{State: msg.OutQueued, ErrorClass: msg.Transient, Error: "why", NotBefore: at(4 * time.Second), Attempts: 3}},
		{"transient for the last time", d{Attempts: maxAttempts - 1}, ordinary(), false, failure(msg.Transient, 0),
			d{State: msg.OutFailed, ErrorClass: msg.Transient, Error: "why", Attempts: maxAttempts}},
		{"copy transient", lost, ordinary(), true, failure(msg.Transient, 0), d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(firstPause), Attempts: 1}},
		{"ambiguous", d{}, ordinary(), false, errCause, d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(10 * time.Second), Attempts: 1}},
		{"ambiguous copy", lost, ordinary(), true, errCause, d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(time.Minute), Attempts: 2}},
		{"last ambiguous copy", d{ErrorClass: msg.Ambiguous, Attempts: 4}, ordinary(), true, errCause, d{State: msg.OutFailed, ErrorClass: msg.Ambiguous, Error: "why", Attempts: 5}},
		{"ambiguous, searchable", d{}, ordinary(searching), false, errCause, d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(firstPause), Attempts: 1}},
		{"ambiguous, repeatable", d{}, ordinary(repeating), false, errCause, d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(firstPause), Attempts: 1}},
		{"ambiguous, no way", d{}, ordinary(unmarkable), false, errCause, d{State: msg.OutAmbiguous, ErrorClass: msg.Ambiguous, Error: "why"}},
		{"ambiguous, old", d{}, ordinary(old), false, errCause,
			d{State: msg.OutFailed, ErrorClass: msg.Expired, Error: "not delivered within 24h0m0s: why", Attempts: 1}},
	}
	for _, tt := range tests {
		why := "why"
		var remark *Remark
		if errors.As(tt.err, &remark) {
			why = remark.Text
		}
		if diff := cmp.Diff(tt.want, afterSend(tt.part, tt.c, tt.copied, "id", tt.err, why)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestPauseAfter_Doubles(t *testing.T) {
	var pauses []time.Duration
	for attempts := range 12 {
		pauses = append(pauses, pauseAfter(attempts)/time.Second)
	}
	if want := []time.Duration{1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}; !slices.Equal(pauses, want) {
		t.Errorf("seconds after each attempt: %d, want %d", pauses, want)
	}
}

func TestAfterSearch_EachResult_HasItsState(t *testing.T) {
	doubt := store.Delivery{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "lost", Attempts: 1}
	crashed := store.Delivery{State: msg.OutSending}
	forbidden := failure(msg.Permanent, 0)
	type d = store.Delivery
	at := func(after time.Duration) int64 { return noon + after.Milliseconds() }
	tried := func(n int) func(*conditions) { return func(c *conditions) { c.searches = n } }
	tests := []struct {
		name       string
		part       d
		c          conditions
		id         string
		err        error
		want       d
		searchable bool
	}{
		{"found", doubt, ordinary(), "7", nil, d{State: msg.OutSent, PlatformID: "7", Attempts: 1}, true},
		{"not found", doubt, ordinary(), "", nil, d{State: msg.OutQueued, Attempts: 1}, true},
		{"not now", doubt, ordinary(tried(2)), "", errCause, d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(4 * time.Second), Attempts: 1}, true},
		{"limited", doubt, ordinary(), "", failure(msg.Rate, time.Hour), d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(time.Hour), Attempts: 1}, true},
		{"not now, old", doubt, ordinary(old), "", errCause, d{State: msg.OutFailed, ErrorClass: msg.Expired, Error: "not delivered within 24h0m0s: why", Attempts: 1}, true},
		{"never", doubt, ordinary(tried(maxAttempts - 1)), "", errCause, d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(9 * time.Second), Attempts: 1}, false},
		{"forbidden", doubt, ordinary(), "", forbidden, d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", NotBefore: at(9 * time.Second), Attempts: 1}, false},
		{"forbidden, after a crash", crashed, ordinary(), "", forbidden, d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why"}, false},
		{"forbidden, not to be marked", doubt, ordinary(unmarkable), "", forbidden, d{State: msg.OutQueued, ErrorClass: msg.Ambiguous, Error: "why", Attempts: 1}, false},
	}
	for _, tt := range tests {
		got, searchable := afterSearch(tt.part, tt.c, tt.id, tt.err, "why")
		if diff := cmp.Diff(tt.want, got); diff != "" || searchable != tt.searchable {
			t.Errorf("%s: searchable %v, (-want +got):\n%s", tt.name, searchable, diff)
		}
	}
}

func TestEndOf_EachRow_HasItsEnd(t *testing.T) {
	part := func(state msg.OutState, id, problem string) store.Delivery {
		return store.Delivery{State: state, PlatformID: id, Error: problem}
	}
	sent, doubted := part(msg.OutSent, "1", markedRecord), part(msg.OutAmbiguous, "", "lost")
	failed, cancelled := part(msg.OutFailed, "", "forbidden"), part(msg.OutCancelled, "", "")
	tests := []struct {
		name  string
		parts []store.Delivery
		want  ending
	}{
		{"no parts", nil, ending{state: msg.OutAmbiguous}},
		{"queued", []store.Delivery{sent, part(msg.OutQueued, "", "")}, ending{}},
		{"sending", []store.Delivery{part(msg.OutSending, "", ""), failed}, ending{}},
		{"sent", []store.Delivery{sent, sent}, ending{msg.OutSent, "1", ""}},
		{"one in doubt", []store.Delivery{sent, doubted, sent}, ending{msg.OutAmbiguous, "1", ""}},
		{"first in doubt", []store.Delivery{doubted, sent}, ending{msg.OutAmbiguous, "", ""}},
		{"failed after doubt", []store.Delivery{doubted, failed, cancelled}, ending{msg.OutFailed, "", "forbidden"}},
	}
	for _, tt := range tests {
		if got := endOf(tt.parts); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// A part that is taken through the table by any platform ends in time, and never without a reason.
func TestStates_AnyPlatform_EndsInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ordinary(func(c *conditions) { c.queuedAt, c.maxAge = c.now, time.Hour })
		c.repeatable, c.markable = rapid.Bool().Draw(t, "repeatable"), rapid.Bool().Draw(t, "markable")
		c.searchable = rapid.Bool().Draw(t, "searchable")
		unsent := &Failure{Class: msg.Transient, Err: ErrUnsent}
		results := rapid.SampledFrom([]error{nil, errCause, unsent, failure(msg.Transient, 0), failure(msg.Rate, time.Hour), failure(msg.Auth, 0), failure(msg.Permanent, 0)})
		outage := rapid.Bool().Draw(t, "only outages")
		p, copies := store.Delivery{State: msg.OutQueued}, 0
		for range 10_000 {
			if c.now > c.queuedAt+(c.maxAge+2*time.Hour).Milliseconds() {
				t.Fatalf("still open after %v: %+v", time.Duration(c.now-c.queuedAt)*time.Millisecond, p)
			}
			err := error(unsent)
			if !outage {
				err = results.Draw(t, "result")
			}
			s := next(p, c)
			switch s.do {
			case doWait:
				c.now += s.wait.Milliseconds()
			case doEnd:
				p = s.part
			case doSearch:
				p, c.searchable = afterSearch(p, c, "", err, "why")
				c.searches++
			default:
				if s.do == doMark {
					copies++
				}
				p = afterSend(beginning(p, s.do), c, s.do == doMark, "id", err, "why")
				if (err == nil) != (p.State == msg.OutSent) {
					t.Fatalf("%v made %+v", err, p)
				}
			}
			if !isOpen(p) {
				break
			}
		}
		switch {
		case isOpen(p):
			t.Fatalf("has no end: %+v", p)
		case p.State != msg.OutSent && (p.Error == "" || p.ErrorClass == "" || p.NotBefore != 0):
			t.Errorf("ended as %+v", p)
		case outage && p.ErrorClass != msg.Expired:
			t.Errorf("an outage used up attempts: %+v", p)
		case p.State == msg.OutAmbiguous && (c.markable || c.repeatable):
			t.Errorf("given up as %+v", p)
		}
	})
}
