package slackapi

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// Word is Slack's own word for why it refused a call, "" if it did not.
func Word(err error) string {
	var refused slack.SlackErrorResponse
	if errors.As(err, &refused) {
		return refused.Err
	}
	return ""
}

// Explain adds to a refusal what undoes it, where that is a scope.
func Explain(err error) error {
	var refused slack.SlackErrorResponse
	if errors.As(err, &refused) && refused.Err == "missing_scope" {
		return fmt.Errorf("%w: add the scope %s under OAuth & Permissions and install the app again", err, refused.Needed)
	}
	return err
}

// Failure says what kind of failure a call's error is. What neither Slack refused nor never
// reached it may have been done.
func Failure(err error) *adapter.Failure {
	var given *adapter.Failure
	if errors.As(err, &given) {
		return given
	}
	f := &adapter.Failure{Class: msg.Ambiguous, Err: Explain(err)}
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	var op *net.OpError
	switch word := Word(err); {
	case errors.As(err, &limited):
		f.Class, f.After = msg.Rate, limited.RetryAfter
	case word != "":
		f.Class = classOf(word)
	case errors.As(err, &status) && status.Code == http.StatusTooManyRequests:
		f.Class = msg.Rate
	case errors.As(err, &status) && status.Code < http.StatusInternalServerError:
		f.Class = msg.Permanent
	case errors.As(err, &op) && op.Op == "dial":
		f.Class = msg.Transient
	}
	if f.Class == msg.Ambiguous && errors.Is(err, ErrUnseen) {
		f.Class = msg.Transient
	}
	return f
}

// classOf is the kind of failure behind a word of Slack's.
func classOf(word string) msg.ErrorClass {
	switch word {
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type":
		return msg.Auth
	case "ratelimited", "rate_limited":
		return msg.Rate
	case "fatal_error", "internal_error", "service_unavailable", "request_timeout":
		return msg.Ambiguous
	}
	return msg.Permanent
}

// Settings is where an app is set up.
const Settings = "https://api.slack.com/apps"

// Token is one of the two that an app has: the variable that holds it, and where the app's settings
// show it.
type Token string

// The tokens.
const (
	BotToken Token = "SLACK_BOT_TOKEN: copy the current one from OAuth & Permissions"
	AppToken Token = "SLACK_APP_TOKEN: copy the current one from Basic Information, App-Level Tokens,"
)

// Broken says why a connection that was made with a token broke, in words that tell an operator
// what to do.
func Broken(err error, with Token) error {
	f := Failure(err)
	word := Word(err)
	switch {
	case word == "socket_mode_not_enabled":
		return &adapter.Failure{Class: msg.Auth, Err: fmt.Errorf("Socket Mode is off: switch it on under Socket Mode of your app at %s (%w)", Settings, err)} //nolint:staticcheck // a name
	case word == "missing_scope", f.Class == msg.Auth:
		return &adapter.Failure{Class: msg.Auth, Err: fmt.Errorf("Slack does not accept %s of your app at %s (%w)", with, Settings, f.Err)} //nolint:staticcheck // a name
	}
	return &adapter.Failure{Class: msg.Transient, After: f.After, Err: err}
}
