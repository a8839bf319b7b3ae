// Package adaptertest is the conformance test of adapters: it runs a platform in the shell, against a
// remote that the platform provides, and checks what that remote has received.
package adaptertest

import (
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Platform is one under test.
type Platform struct {
	Name   string    // the first part of its chat addresses
	Chats  [2]string // addresses of two chats of its remote
	Thread string    // id of a thread of the first one, "" for a platform without threads
	// Replies means that a message can reply to another one.
	Replies bool
	// Raw means that users read the rows as stored, so that secrets are redacted before.
	Raw bool
	// New makes a remote. The store contains the rows of the platform once they are settled.
	New func(t testing.TB, st func() *store.Store) Remote
	// Options sets what the adapter's daemon sets: Repeatable, Mark, Pace.
	Options func(*adapter.Options)
	// TooLong reports whether a part is longer than the platform allows; nil for no limit.
	TooLong func(text string) bool
	// Marked reports whether a part is marked as a possible duplicate.
	Marked func(text string) bool
	// Mentions reports whether a part pings users; nil if no part can.
	Mentions func(text string) bool
}

// Remote is the other side of the platform, mostly a fake.
type Remote struct {
	// Connect makes a platform for this remote; the shell is started more than once.
	Connect func() adapter.Platform
	// Received lists the parts that have arrived, in order.
	Received func() []Received
	// Fail injects a fault for the next part for a chat; nil if nothing can fail.
	Fail func(chatJID string, f Fault)
}

// Received is a part as it arrived.
type Received struct {
	ChatJID string
	Thread  string
	ReplyTo string // the platform's id of the message it replies to
	Text    string // as users see it
}

// Fault is a fault of a remote.
type Fault struct {
	Class   msg.ErrorClass
	After   time.Duration // of a rate fault
	Arrived bool          // of an ambiguous fault: the part is there
}

// Run runs all cases.
func Run(t *testing.T, p Platform) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.applies == nil || c.applies(p) {
				c.run(newFixture(t, p))
			}
		})
	}
}

// testCase is one of the suite.
type testCase struct {
	name    string
	applies func(Platform) bool // nil: to all
	run     func(*fixture)
}

func cases() []testCase {
	threads := func(p Platform) bool { return p.Thread != "" }
	replies := func(p Platform) bool { return p.Replies }
	redacts := func(p Platform) bool { return !p.Raw }
	mentions := func(p Platform) bool { return p.Mentions != nil }
	return []testCase{
		{"text in order", nil, textInOrder},
		{"long text", nil, longText},
		{"two chats", nil, twoChats},
		{"reply", replies, reply},
		{"thread", threads, thread},
		{"permanent failure", nil, permanentFailure},
		{"rate failure", nil, rateFailure},
		{"transient failure", nil, transientFailure},
		{"ambiguous failure", nil, ambiguousFailure},
		{"crash before the record", nil, crashBeforeTheRecord},
		{"crash before the send", nil, crashBeforeTheSend},
		{"stop in the middle", nil, stopInTheMiddle},
		{"cancelled row", nil, cancelledRow},
		{"odd content", nil, oddContent},
		{"secrets", redacts, secrets},
		{"mentions", mentions, massMentions},
	}
}
