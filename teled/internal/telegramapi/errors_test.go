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
	return refusedCall("sendMessage", code, description)
}

func refusedCall(method string, code int, description string) error {
	return fmt.Errorf("%s: %w", method, &Error{Method: method, Code: code, Description: description, RetryAfter: 3 * time.Second})
}

// page is the answer of what stands in front of the API.
func page(method string, code int) error {
	return fmt.Errorf("%s: %w", method, &Error{Method: method, Code: code, Foreign: true})
}

func TestFailure_ClassOfEachError(t *testing.T) {
	for _, tt := range []struct {
		err   error
		class msg.ErrorClass
		after time.Duration
	}{
		{refused(429, "so"), msg.Rate, 3 * time.Second},
		{refused(401, "so"), msg.Auth, 3 * time.Second},
		{refused(404, "so"), msg.Permanent, 3 * time.Second},
		{refused(400, "so"), msg.Permanent, 3 * time.Second},
		{refusedCall("getFile", 400, "Bad Request: wrong file_id or the file is temporarily unavailable"), msg.Transient, 3 * time.Second},
		{refused(403, "so"), msg.Permanent, 3 * time.Second},
		{refused(413, "so"), msg.Permanent, 3 * time.Second},
		{refused(500, "so"), msg.Ambiguous, 3 * time.Second},
		{fmt.Errorf("%w: connection refused", adapter.ErrUnsent), msg.Transient, 0},
		{errors.New("the server answered 502"), msg.Ambiguous, 0},
		{&adapter.Failure{Class: msg.Permanent, Err: os.ErrNotExist}, msg.Permanent, 0},
		{page("sendMessage", 403), msg.Transient, 0},
		{page("sendMessage", 429), msg.Rate, adapter.ForeignWait},
	} {
		if f := failure(tt.err); f.Class != tt.class || f.After != tt.after {
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
		{refusedCall("getMe", 404, "Not Found"), msg.Auth, 0, "@BotFather"},
		{refusedCall("getUpdates", 404, "Not Found: method not found"), msg.Permanent, conflictPause, "does not have the method getUpdates"},
		{refused(409, "Conflict: terminated by other getUpdates request"), msg.Permanent, conflictPause, "another program"},
		{refused(409, "Conflict: can't use getUpdates method while webhook is active"), msg.Permanent, conflictPause, "deleteWebhook"},
		{refused(429, "Too Many Requests"), msg.Rate, 3 * time.Second, "Too Many Requests"},
		{refused(500, "Internal Server Error"), msg.Transient, 3 * time.Second, "Internal Server Error"},
		{page("getMe", 404), msg.Transient, 0, "in place of Telegram, with status 404"},
		{page("getUpdates", 403), msg.Transient, 0, "with status 403"},
		{page("getUpdates", 429), msg.Rate, adapter.ForeignWait, "with status 429"},
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

// Every server has getMe: what it answers tells a wrong token from a method that an old server does not have.
func TestFailure_NotFound_GetMeDecides(t *testing.T) {
	notFound := refusedCall("setMessageReaction", 404, "Not Found: method not found")
	for name, tt := range map[string]struct {
		code   int
		answer string
		class  msg.ErrorClass
		want   string
	}{
		"method unknown": {200, `{"ok":true,"result":{"id":7}}`, msg.Permanent, "does not have the method setMessageReaction"},
		"token wrong":    {404, `{"ok":false,"error_code":404,"description":"Not Found"}`, msg.Auth, "Not Found"},
		"token revoked":  {401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`, msg.Auth, "Not Found"},
		"server broken":  {502, "Bad Gateway", msg.Transient, "Not Found"},
	} {
		c := serve(t, answer(tt.code, tt.answer))
		if f := c.Failure(t.Context(), notFound); f.Class != tt.class || !strings.Contains(f.Error(), tt.want) {
			t.Errorf("%s: %v, want %s with %q", name, f, tt.class, tt.want)
		}
	}
}
