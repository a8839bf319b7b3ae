package telegramapi

import (
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
	Code        int // as HTTP's
	Description string
	RetryAfter  time.Duration // of 429
	MigrateTo   int64         // the chat's new id, if it has become a supergroup
}

func (e *Error) Error() string {
	return fmt.Sprintf("Telegram refuses the call: %d %s", e.Code, e.Description)
}

// RefusedFor reports whether a call was refused as a bad request whose description contains a text.
func RefusedFor(err error, text string) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == http.StatusBadRequest &&
		strings.Contains(strings.ToLower(refused.Description), text)
}

// TokenRefused reports whether a call was refused because the token is not valid, or never was.
func TokenRefused(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && tokenCode(refused.Code)
}

func tokenCode(code int) bool {
	return code == http.StatusUnauthorized || code == http.StatusNotFound
}

// Failure classifies the error of a call.
func Failure(err error) *adapter.Failure {
	classes := adapter.Classes{Status: map[int]msg.ErrorClass{
		http.StatusUnauthorized: msg.Auth, http.StatusNotFound: msg.Auth, // see tokenCode
	}}
	var refusal *adapter.Refusal
	var refused *Error
	if errors.As(err, &refused) {
		refusal = &adapter.Refusal{Status: refused.Code, RetryAfter: refused.RetryAfter}
	}
	return classes.Classify(err, refusal)
}

// ConnectionError says why a connection ended, and what an operator can do about it.
func ConnectionError(err error) error {
	var refused *Error
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case tokenCode(refused.Code):
		return &adapter.Failure{Class: msg.Auth, Err: fmt.Errorf("Telegram does not accept TELEGRAM_BOT_TOKEN: ask @BotFather for the current one (%w)", err)} //nolint:staticcheck // a name
	case refused.Code == http.StatusConflict:
		return &adapter.Failure{Class: msg.Transient, After: conflictPause, Err: fmt.Errorf("%s (%w)", conflict(refused), err)}
	}
	return &adapter.Failure{Class: msg.Transient, After: refused.RetryAfter, Err: err}
}

// conflict says what else receives the bot's updates.
func conflict(refused *Error) string {
	if strings.Contains(refused.Description, "webhook") {
		return "a webhook is set and receives the updates: call deleteWebhook, or run `teled check`"
	}
	return "another program reads this bot's updates: stop it, or use another bot for it"
}
