package discordapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// Error is the API's refusal of a call.
type Error struct {
	Status     int // HTTP's
	Code       int // Discord's own, 0 for none
	Message    string
	RetryAfter time.Duration // of 429
	Foreign    bool          // it is of a proxy or a firewall, not of the API
	Account    bool          // of 429: it holds for all calls of the bot
	sends      bool          // the call was to make something
}

// ofOneMessage reports whether status 429 has a code of its own: it is about the call's own effect, such as one edit
// more of an old message (30046), or one in a channel of announcements (20022), not about how often the bot calls. It
// may lack the time to wait, and the headers of rate limits.
func (e *Error) ofOneMessage() bool { return e.Status == http.StatusTooManyRequests && e.Code != 0 }

func (e *Error) Error() string {
	if e.Code == 0 {
		return fmt.Sprintf("Discord refuses the call: %d %s", e.Status, e.Message)
	}
	return fmt.Sprintf("Discord refuses the call: %d %s (%d)", e.Status, e.Message, e.Code)
}

// RefusedFor reports whether a call was refused with one of Discord's own codes.
func RefusedFor(err error, code int) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == code
}

// Gone reports whether a call was refused because its channel does not exist.
func Gone(err error) bool { return RefusedFor(err, unknownChannel) }

// unknownChannel is Discord's code for a channel that does not exist.
const unknownChannel = 10003

// TokenRefused reports whether a call was refused because the token is not valid.
func TokenRefused(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Status == http.StatusUnauthorized && !refused.Foreign
}

// Failure classifies the error of a call.
func Failure(err error) *adapter.Failure {
	classes := adapter.Classes{Status: map[int]msg.ErrorClass{http.StatusUnauthorized: msg.Auth}}
	var refusal *adapter.Refusal
	var refused *Error
	if errors.As(err, &refused) {
		refusal = &adapter.Refusal{Status: refused.Status, RetryAfter: refused.RetryAfter, Foreign: refused.Foreign}
	}
	f := classes.Classify(err, refusal)
	f.Account = refused != nil && refused.Account
	if refused != nil && refused.ofOneMessage() && !refused.sends { // a new message may be sent once slowmode allows it
		f.Class = msg.Permanent
	}
	return f
}
