package slackapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// Code is Slack's error code of a refused call, "" if it was not refused.
func Code(err error) string {
	var refused slack.SlackErrorResponse
	if errors.As(err, &refused) {
		return refused.Err
	}
	return ""
}

// Explain adds to an error the scope that is missing, if that is the reason.
func Explain(err error) error {
	var refused slack.SlackErrorResponse
	if errors.As(err, &refused) && refused.Err == "missing_scope" {
		return fmt.Errorf("%w: add the scope %s under OAuth & Permissions and install the app again", err, refused.Needed)
	}
	return err
}

// Failure classifies the error of a call.
func Failure(err error) *adapter.Failure {
	f := classes().Classify(Explain(err), refusal(err))
	if f.Class == msg.Ambiguous && errors.Is(err, ErrUnseen) {
		f.Class = msg.Transient
	}
	return f
}

func refusal(err error) *adapter.Refusal {
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	switch code := Code(err); {
	case errors.As(err, &limited):
		return &adapter.Refusal{Status: http.StatusTooManyRequests, RetryAfter: limited.RetryAfter}
	case code != "":
		return &adapter.Refusal{Code: code}
	case errors.As(err, &status):
		return &adapter.Refusal{Status: status.Code}
	}
	return nil
}

func classes() adapter.Classes {
	return adapter.Classes{Code: map[string]msg.ErrorClass{
		"invalid_auth": msg.Auth, "not_authed": msg.Auth, "account_inactive": msg.Auth, "token_revoked": msg.Auth,
		"token_expired": msg.Auth, "not_allowed_token_type": msg.Auth,
		"ratelimited": msg.Rate, "rate_limited": msg.Rate,
		"fatal_error": msg.Ambiguous, "internal_error": msg.Ambiguous, "service_unavailable": msg.Ambiguous,
		"request_timeout": msg.Ambiguous,
	}}
}

// AppSettings is the page of an app's settings.
const AppSettings = "https://api.slack.com/apps"

// Token names one of an app's two tokens: its variable, and where the app's settings show it.
type Token string

// The tokens.
const (
	BotToken Token = "SLACK_BOT_TOKEN: copy the current one from OAuth & Permissions"
	AppToken Token = "SLACK_APP_TOKEN: copy the current one from Basic Information, App-Level Tokens,"
)

// ConnectionError says why a connection that uses a token ended, and what an operator can do about it.
func ConnectionError(err error, with Token) error {
	f := Failure(err)
	code := Code(err)
	switch {
	case code == "socket_mode_not_enabled":
		return &adapter.Failure{Class: msg.Auth, Err: fmt.Errorf("Socket Mode is off: switch it on under Socket Mode of your app at %s (%w)", AppSettings, err)} //nolint:staticcheck // a name
	case code == "missing_scope", f.Class == msg.Auth:
		return &adapter.Failure{Class: msg.Auth, Err: fmt.Errorf("Slack does not accept %s of your app at %s (%w)", with, AppSettings, f.Err)} //nolint:staticcheck // a name
	}
	return &adapter.Failure{Class: msg.Transient, After: f.After, Err: err}
}
