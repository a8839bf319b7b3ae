package slackapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

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

// RetryAfter is how long Slack's rate limits refuse a call; limited says whether they do.
func RetryAfter(err error) (wait time.Duration, limited bool) {
	f := Failure(err)
	return max(f.After, time.Second), err != nil && f.Class == msg.Rate
}

// Explain adds the meaning of an error of Slack's, and a remedy, if they are known.
func Explain(err error) error {
	var refused slack.SlackErrorResponse
	if !errors.As(err, &refused) {
		return err
	}
	advice := map[string]string{
		"missing_scope": "add the scope " + refused.Needed +
			" under OAuth & Permissions and install the app again",
		"is_archived":           "the channel is archived",
		"not_in_channel":        "the bot is not in the channel: /invite it there",
		"channel_not_found":     "the channel does not exist, or the bot is not in it",
		"messages_tab_disabled": "switch on the Messages Tab under App Home",
		"restricted_action":     "the workspace does not let the bot write there",
		"msg_too_long":          "the message is longer than Slack accepts",
		"unknown_method":        "the server at SLACK_API_URL does not have this method",
		"edit_window_closed":    "the workspace allows no edits of messages of this age",
	}[refused.Err]
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
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
		return &adapter.Refusal{Status: status.Code, Foreign: true} // Slack itself refuses with 200 and a code
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

// ConnectionError says why a connection that uses a token ended, with advice for operators.
func ConnectionError(err error, with Token) error {
	f := Failure(err)
	code := Code(err)
	switch {
	case code == "socket_mode_not_enabled":
		err = fmt.Errorf("Socket Mode is off: switch it on under Socket Mode of your app at %s (%w)",
			AppSettings, err)
		return &adapter.Failure{Class: msg.Auth, Err: err}
	case code == "missing_scope", f.Class == msg.Auth:
		err = fmt.Errorf("Slack does not accept %s of your app at %s (%w)", with, AppSettings, f.Err)
		return &adapter.Failure{Class: msg.Auth, Err: err}
	}
	return &adapter.Failure{Class: msg.Transient, After: f.After, Err: Explain(err)}
}
