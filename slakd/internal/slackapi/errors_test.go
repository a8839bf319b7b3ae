package slackapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

func TestFailure(t *testing.T) {
	refused := func(word string) error {
		return fmt.Errorf("chat.postMessage: %w", slack.SlackErrorResponse{Err: word, Needed: "chat:write"})
	}
	unsent := fmt.Errorf("Post: %w", adapter.ErrUnsent)
	read := &url.Error{Op: "Post", URL: "https://slack.com/api/x", Err: &net.OpError{Op: "read", Err: errors.New("connection reset")}}
	for _, tt := range []struct {
		err   error
		class msg.ErrorClass
		after time.Duration
	}{
		{fmt.Errorf("x: %w", &slack.RateLimitedError{RetryAfter: 3 * time.Second}), msg.Rate, 3 * time.Second},
		{refused("ratelimited"), msg.Rate, 0},
		{slack.StatusCodeError{Code: 429}, msg.Rate, adapter.ForeignWait},
		{refused("invalid_auth"), msg.Auth, 0},
		{refused("token_revoked"), msg.Auth, 0},
		{refused("account_inactive"), msg.Auth, 0},
		{refused("not_allowed_token_type"), msg.Auth, 0},
		{refused("channel_not_found"), msg.Permanent, 0},
		{refused("is_archived"), msg.Permanent, 0},
		{refused("missing_scope"), msg.Permanent, 0},
		{refused("whatever_comes_next"), msg.Permanent, 0},
		{slack.StatusCodeError{Code: 403}, msg.Transient, 0},
		{slack.StatusCodeError{Code: 413}, msg.Permanent, 0},
		{refused("internal_error"), msg.Ambiguous, 0},
		{refused("fatal_error"), msg.Ambiguous, 0},
		{slack.StatusCodeError{Code: 503}, msg.Ambiguous, 0},
		{read, msg.Ambiguous, 0},
		{context.DeadlineExceeded, msg.Ambiguous, 0},
		{errors.New("invalid character '<'"), msg.Ambiguous, 0},
		{unsent, msg.Transient, 0},
		{fmt.Errorf("%w: %w", ErrUnseen, read), msg.Transient, 0},
		{fmt.Errorf("%w: %w", ErrUnseen, refused("is_archived")), msg.Permanent, 0},
		{&adapter.Failure{Class: msg.Transient, Err: errors.New("x")}, msg.Transient, 0},
	} {
		if f := Failure(tt.err); f.Class != tt.class || f.After != tt.after || !errors.Is(f, tt.err) && f != tt.err {
			t.Errorf("%v is %v after %s, not %s after %s", tt.err, f, f.After, tt.class, tt.after)
		}
	}
	if text := Failure(refused("missing_scope")).Error(); !strings.Contains(text, "chat:write") {
		t.Errorf("%q does not name the scope", text)
	}
}
