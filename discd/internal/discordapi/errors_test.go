package discordapi

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

func TestFailure_ClassOfEachStatus(t *testing.T) {
	for status, class := range map[int]msg.ErrorClass{
		429: msg.Rate, 401: msg.Auth, 404: msg.Permanent, 400: msg.Permanent, 403: msg.Permanent, 413: msg.Permanent,
		500: msg.Ambiguous, 502: msg.Ambiguous,
	} {
		err := fmt.Errorf("POST: %w", &Error{Status: status, Message: "so", RetryAfter: 3 * time.Second})
		if f := Failure(err); f.Class != class || f.After != 3*time.Second || !errors.Is(f, err) {
			t.Errorf("%d is %s after %s, want %s", status, f.Class, f.After, class)
		}
	}
	for _, code := range []int{30046, 20016, 20022, 20028} { // a new message waits, a change does not
		for sends, class := range map[bool]msg.ErrorClass{true: msg.Rate, false: msg.Permanent} {
			if f := Failure(&Error{Status: 429, Code: code, sends: sends}); f.Class != class || f.Account {
				t.Errorf("429 with %d, sends: %v: %+v", code, sends, f)
			}
		}
	}
	if f := Failure(&Error{Status: 403, Foreign: true}); f.Class != msg.Transient {
		t.Errorf("a firewall's page is %s", f.Class)
	}
	if f := Failure(adapter.ErrUnsent); f.Class != msg.Transient {
		t.Errorf("an unsent call is %s", f.Class)
	}
	if f := Failure(errors.New("unexpected EOF")); f.Class != msg.Ambiguous {
		t.Errorf("a call without an answer is %s", f.Class)
	}
}
