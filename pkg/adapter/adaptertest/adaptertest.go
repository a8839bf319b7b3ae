// Package adaptertest is what every platform's adapter has to pass: it runs the platform in the
// shell, against a remote of the platform's own making, and judges by what that remote received.
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
	Name   string    // as it stands in chat addresses
	Chats  [2]string // addresses of chats that its remote knows
	Thread string    // id of a thread of the first one, "" for a platform without threads
	// Replies says that a message can hang on another one.
	Replies bool
	// Raw says that people read the rows as they are stored: secrets have to be hidden before.
	Raw bool
	// New makes a remote. Rows of the store are the platform's own, once they are settled.
	New func(t testing.TB, st func() *store.Store) Remote
	// Options sets what the adapter's daemon does: Repeatable, Mark, Pace.
	Options func(*adapter.Options)
	// TooLong says of a part that it is longer than the platform allows; nil for no limit.
	TooLong func(text string) bool
	// Marked says of a part that it is marked as a possible duplicate.
	Marked func(text string) bool
	// Mentions says of a part that it calls on people; nil where nothing does.
	Mentions func(text string) bool
}

// Remote is what is on the other side.
type Remote struct {
	// Connect makes the platform that talks to this remote; the shell is started more than once.
	Connect func() adapter.Platform
	// Received lists what has arrived, in that order.
	Received func() []Received
	// Fail has the remote fail the next part for a chat; nil where nothing can fail.
	Fail func(chatJID string, f Fault)
}

// Received is a part as it arrived.
type Received struct {
	ChatJID string
	Thread  string
	ReplyTo string // the platform's id of what it hangs on
	Text    string // as people see it
}

// Fault is how a remote fails.
type Fault struct {
	Class   msg.ErrorClass
	After   time.Duration // of a rate fault
	Arrived bool          // of an ambiguous one: the part is there
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
	tells := func(p Platform) bool { return !p.Raw }
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
		{"secrets", tells, secrets},
		{"mentions", mentions, massMentions},
	}
}
