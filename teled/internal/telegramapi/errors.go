package telegramapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// conflictPause is how long another program that reads the bot's updates is left alone.
const conflictPause = 30 * time.Second

// Error is the API's refusal of a call.
type Error struct {
	Method      string
	Code        int // as HTTP's
	Description string
	RetryAfter  time.Duration // of 429
	MigrateTo   int64         // the chat's new id, if it has become a supergroup
	// Foreign means that the answer is a page of a proxy or of a firewall in front of the API.
	Foreign bool
}

func (e *Error) Error() string {
	if e.Foreign {
		return fmt.Sprintf("a proxy or firewall answers in place of Telegram, with status %d", e.Code)
	}
	return fmt.Sprintf("Telegram refuses the call: %d %s", e.Code, e.Description)
}

// RefusedFor reports whether a call was refused as a bad request whose description contains a text.
func RefusedFor(err error, text string) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == http.StatusBadRequest &&
		strings.Contains(strings.ToLower(refused.Description), text)
}

// TooLarge reports whether a call was refused for the size of its file.
func TooLarge(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == http.StatusRequestEntityTooLarge
}

// TokenRefused reports whether a call was refused because the token is not valid, or never was.
func TokenRefused(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.ofToken()
}

// ofToken reports whether the token is refused. A path with an impossible token is not found; so is a method
// that a server of one's own does not have, but every server has getMe.
func (e *Error) ofToken() bool {
	return !e.Foreign && (e.Code == http.StatusUnauthorized || e.Code == http.StatusNotFound && e.Method == checkMethod)
}

// checkMethod is the method that tells whether a token is valid.
const checkMethod = "getMe"

// Failure classifies the error of a call. If something was not found, getMe tells whether that is the token or
// the method.
func (c *Client) Failure(ctx context.Context, err error) *adapter.Failure {
	f := failure(err)
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != http.StatusNotFound || refused.Foreign || refused.ofToken() {
		return f
	}
	switch check := c.Call(ctx, checkMethod, nil, nil); {
	case TokenRefused(check):
		f.Class = msg.Auth
	case check != nil: // nothing was carried out
		f.Class = msg.Transient
	default:
		f.Err = fmt.Errorf("the server of TELEGRAM_API_URL does not have the method %s: %w", refused.Method, err)
	}
	return f
}

func failure(err error) *adapter.Failure {
	classes := adapter.Classes{Status: map[int]msg.ErrorClass{http.StatusUnauthorized: msg.Auth}}
	var refusal *adapter.Refusal
	var refused *Error
	if errors.As(err, &refused) {
		refusal = &adapter.Refusal{Status: refused.Code, RetryAfter: refused.RetryAfter, Foreign: refused.Foreign}
	}
	f := classes.Classify(err, refusal)
	if RefusedFor(err, "temporarily unavailable") { // a file, which another call may get
		f.Class = msg.Transient
	}
	return f
}

// ConnectionError says why a connection ended, with advice for operators. A refusal by Telegram itself is
// no outage: it answers other calls.
func ConnectionError(err error) error {
	var refused *Error
	if !errors.As(err, &refused) {
		return err
	}
	f := failure(err)
	switch {
	case refused.ofToken():
		err = fmt.Errorf("Telegram does not accept TELEGRAM_BOT_TOKEN: ask @BotFather for the current one (%w)", err)
		return &adapter.Failure{Class: msg.Auth, Err: err}
	case f.Class == msg.Ambiguous: // nothing that was asked for could be done twice
		f.Class = msg.Transient
	case f.Class == msg.Permanent:
		f.After = conflictPause
	}
	switch {
	case refused.Foreign:
	case refused.Code == http.StatusNotFound:
		f.Err = fmt.Errorf("the server of TELEGRAM_API_URL does not have the method %s (%w)", refused.Method, err)
	case Conflict(err):
		f.Err = fmt.Errorf("%s (%w)", conflict(refused), err)
	}
	return f
}

// Conflict reports whether a call was refused since something else receives the bot's updates.
func Conflict(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == http.StatusConflict
}

// OtherReader reports whether that is another program that reads them as teled does, and not a webhook.
func OtherReader(err error) bool {
	var refused *Error
	return Conflict(err) && errors.As(err, &refused) && !refused.ofWebhook()
}

func (e *Error) ofWebhook() bool { return strings.Contains(e.Description, "webhook") }

// conflict names the other receiver of the bot's updates.
func conflict(refused *Error) string {
	if refused.ofWebhook() {
		return "a webhook is set and receives the updates: call deleteWebhook, or run `teled check`"
	}
	return "another program reads this bot's updates: stop it, or use another bot for it"
}
