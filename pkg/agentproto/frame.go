package agentproto

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Delimiters of a frame. Each is a whole line.
const (
	FrameStart = "---ARIZUKO_OUTPUT_START---"
	FrameEnd   = "---ARIZUKO_OUTPUT_END---"
)

// MaxFrame is the size limit of a frame's body in bytes. A reply is a chat
// message of a few thousand characters; 1 MiB is far above that and bounds the
// memory that a runaway agent can use.
const MaxFrame = 1 << 20

// Values of [Frame.Status].
const (
	StatusOK    = "ok"
	StatusError = "error"
)

// Kind is the effect of a failure on the turn and the session.
type Kind string

// Values of [Frame.Kind].
const (
	// KindSession: the session is lost or unusable. It is dropped and the turn retried
	// with a new one.
	KindSession Kind = "session"
	// KindTransient: the call may work later, such as an overloaded API. The session
	// stays and the turn is retried.
	KindTransient Kind = "transient"
	// KindPermanent: a retry cannot succeed, for example with a wrong key. The session
	// stays and the turn is not retried.
	KindPermanent Kind = "permanent"
)

// Known reports whether k is one of the kinds above.
func (k Kind) Known() bool {
	return k == KindSession || k == KindTransient || k == KindPermanent
}

// MaxRetryAfter is the longest delay that an agent can ask for. The reset time of
// a usage limit can be days away; checking once an hour costs little and notices
// an earlier change.
const MaxRetryAfter = time.Hour

// Frame is one answer of an agent.
type Frame struct {
	Status string `json:"status"`
	// Result is the answer in markdown; "" means that the agent chose not to answer.
	Result string `json:"result"`
	// NewSessionID names the session to resume next time; "" keeps the current one.
	NewSessionID string `json:"newSessionId,omitempty"`
	// Error is the reason, in words, if Status is error.
	Error string `json:"error,omitempty"`
	// Kind is the kind of the failure if Status is error, as the agent wrote it;
	// see [Frame.ErrorKind].
	Kind Kind `json:"kind,omitempty"`
	// RetryAfter is in seconds, with kind transient: the earliest time for the next
	// attempt; see [Frame.RetryDelay].
	RetryAfter float64 `json:"retry_after,omitempty"`
	// TurnID is the turn this answers; "" means the oldest unanswered one.
	TurnID string `json:"turnId,omitempty"`
	// TurnIDs, in place of TurnID, are the turns that this answers together: one that was under way, and
	// those that the agent has folded into it. Each is named once.
	TurnIDs []string `json:"turnIds,omitempty"`
	// Final is false when more frames of this turn follow; nil means true.
	Final *bool `json:"final,omitempty"`
}

// More reports whether the agent announced further frames for the same turn.
func (f Frame) More() bool { return f.Final != nil && !*f.Final }

// Turns returns the turns that the frame names, none if it is for the oldest unanswered one.
func (f Frame) Turns() []string {
	if f.TurnID != "" {
		return []string{f.TurnID}
	}
	return f.TurnIDs
}

// ErrorKind is the kind of a failure, session if it is missing or unknown: an
// agent written for a later version must not fail twice because of it.
func (f Frame) ErrorKind() Kind {
	if f.Kind.Known() {
		return f.Kind
	}
	return KindSession
}

// RetryDelay is RetryAfter between 0 and MaxRetryAfter, and 0 unless the kind is
// transient.
func (f Frame) RetryDelay() time.Duration {
	if f.Kind != KindTransient {
		return 0
	}
	seconds := min(max(f.RetryAfter, 0), MaxRetryAfter.Seconds())
	return time.Duration(seconds * float64(time.Second))
}

// Malformed is the error for a frame that cannot be parsed. It concerns one
// turn; the frames after it are still read.
type Malformed struct {
	Reason string
	// TurnID is the turn that the frame named, "" if that could not be read.
	TurnID string
	// Excerpt is the beginning of the body, valid UTF-8, at most 200 bytes.
	Excerpt string
}

func (m *Malformed) Error() string {
	return fmt.Sprintf("malformed frame: %s: %q", m.Reason, m.Excerpt)
}

// WriteFrame writes f with its delimiters in a single Write, so that frames of
// concurrent writers and log lines do not mix. It begins with a new line, in case
// the output before does not end with one.
func WriteFrame(w io.Writer, f Frame) error {
	body, err := encodeLine(f)
	if err != nil {
		return err
	}
	if len(body) > MaxFrame {
		return fmt.Errorf("agentproto: frame of %d bytes is over the limit of %d", len(body), MaxFrame)
	}
	_, err = w.Write([]byte("\n" + FrameStart + "\n" + string(body) + FrameEnd + "\n"))
	return err
}

// parseFrame returns a *Malformed error if body is not a frame. The strings of the
// result are valid UTF-8 without NUL bytes, which SQLite's text functions and some
// platforms do not handle.
func parseFrame(body []byte) (Frame, error) {
	var f Frame
	err := json.Unmarshal(body, &f)
	for _, s := range []*string{&f.Status, &f.Result, &f.NewSessionID, &f.Error, &f.TurnID} {
		*s = clean(*s)
	}
	f.Kind = Kind(clean(string(f.Kind)))
	for i := range f.TurnIDs {
		f.TurnIDs[i] = clean(f.TurnIDs[i])
	}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		bad := &Malformed{Reason: err.Error(), Excerpt: excerpt(body)}
		if named := f.Turns(); len(named) > 0 {
			bad.TurnID = named[0]
		}
		return Frame{}, bad
	}
	return f, nil
}

// check returns what is wrong with a frame that could be decoded.
func (f Frame) check() error {
	if f.Status != StatusOK && f.Status != StatusError {
		return fmt.Errorf("status is %q, want ok or error", Truncate(f.Status, 40))
	}
	switch {
	case f.TurnIDs == nil:
		return nil
	case f.TurnID != "":
		return errors.New("turnId and turnIds are both set, want one of them")
	case len(f.TurnIDs) == 0 || len(f.TurnIDs) > MaxTurnIDs:
		return fmt.Errorf("turnIds has %d turns, want 1 to %d", len(f.TurnIDs), MaxTurnIDs)
	}
	for i, id := range f.TurnIDs {
		if id == "" {
			return errors.New("turnIds has an empty text, want the turnId of a line")
		}
		if slices.Contains(f.TurnIDs[:i], id) {
			return fmt.Errorf("turnIds names turn %q twice", Truncate(id, 40))
		}
	}
	return nil
}

func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, string(utf8.RuneError)), "\x00", "")
}

func excerpt(body []byte) string {
	return Truncate(clean(string(body[:min(len(body), 400)])), 200)
}
