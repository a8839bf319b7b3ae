package telegramapi

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

func refused(code int, description string) error {
	return fmt.Errorf("sendMessage: %w", &Error{Code: code, Description: description, RetryAfter: 3 * time.Second})
}

func TestFailure_ClassOfEachError(t *testing.T) {
	for _, tt := range []struct {
		err   error
		class msg.ErrorClass
		after time.Duration
	}{
		{refused(429, "so"), msg.Rate, 3 * time.Second},
		{refused(401, "so"), msg.Auth, 3 * time.Second},
		{refused(404, "so"), msg.Auth, 3 * time.Second},
		{refused(400, "so"), msg.Permanent, 3 * time.Second},
		{refused(403, "so"), msg.Permanent, 3 * time.Second},
		{refused(413, "so"), msg.Permanent, 3 * time.Second},
		{refused(500, "so"), msg.Ambiguous, 3 * time.Second},
		{fmt.Errorf("%w: connection refused", adapter.ErrUnsent), msg.Transient, 0},
		{errors.New("the server answered 502"), msg.Ambiguous, 0},
		{&adapter.Failure{Class: msg.Permanent, Err: os.ErrNotExist}, msg.Permanent, 0},
	} {
		if f := Failure(tt.err); f.Class != tt.class || f.After != tt.after {
			t.Errorf("%v is %s after %s, not %s after %s", tt.err, f.Class, f.After, tt.class, tt.after)
		}
	}
}

func TestConnectionError_NamesTheRemedy(t *testing.T) {
	for _, tt := range []struct {
		err   error
		class msg.ErrorClass
		after time.Duration
		want  string
	}{
		{refused(401, "Unauthorized"), msg.Auth, 0, "TELEGRAM_BOT_TOKEN"},
		{refused(404, "Not Found"), msg.Auth, 0, "@BotFather"},
		{refused(409, "Conflict: terminated by other getUpdates request"), msg.Transient, conflictPause, "another program"},
		{refused(409, "Conflict: can't use getUpdates method while webhook is active"), msg.Transient, conflictPause, "deleteWebhook"},
		{refused(429, "Too Many Requests"), msg.Transient, 3 * time.Second, "Too Many Requests"},
		{refused(500, "Internal Server Error"), msg.Transient, 3 * time.Second, "Internal Server Error"},
	} {
		var f *adapter.Failure
		err := ConnectionError(tt.err)
		if !errors.As(err, &f) || f.Class != tt.class || f.After != tt.after || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%v, want %s after %s with %q", err, tt.class, tt.after, tt.want)
		}
		if token := tt.class == msg.Auth; TokenRefused(tt.err) != token {
			t.Errorf("%v: the token is refused: %t", tt.err, !token)
		}
	}
	if err := errors.New("reset by peer"); ConnectionError(err) != err || TokenRefused(err) {
		t.Error("an error of the network is changed")
	}
}

func TestRefusedFor(t *testing.T) {
	if !RefusedFor(refused(400, "Bad Request: can't parse ENTITIES"), "entit") {
		t.Error("the case of the description matters")
	}
	for _, err := range []error{refused(403, "entities"), refused(400, "chat not found"), errors.New("entities"), nil} {
		if RefusedFor(err, "entit") {
			t.Errorf("%v is refused for its entities", err)
		}
	}
}
