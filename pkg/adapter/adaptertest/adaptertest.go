// Package adaptertest is the conformance test of adapters: it runs a platform in the shell, against a
// remote that the platform provides, and checks the parts that have arrived there.
package adaptertest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
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
	// Repeats means that the parts of posts are Repeatable.
	Repeats bool
	// Options sets the options that the adapter's daemon sets: Mark, Pace.
	Options func(*adapter.Options)
	// TooLong reports whether a part is longer than the platform allows; nil for no limit.
	TooLong func(text string) bool
	// Marked reports whether a part is marked as a possible duplicate.
	Marked func(text string) bool
	// Foreign means that the remote has Run, and recognises a part that is sent again. Records before
	// the end of a part are not checked.
	Foreign bool
	// Outages means that the remote has SetOutage.
	Outages bool
	// Waiting is how many rows wait in the longest queue of an outage: a thousand if it is 0.
	Waiting int
	// Writes means that the remote has Listen, Write and SetOutage.
	Writes bool
	// Floods, Closes and Deletes mean that the remote has FloodAccount, CloseThread and DeleteThread.
	Floods, Closes, Deletes bool
	// Previews means that the platform is an adapter.Previewer whose previews in the first chat are messages, and that
	// the remote has Shown, FailEdit and Delete.
	Previews bool
	// Questions means that messages can have buttons, that the platform is an adapter.Undoer, and that the remote has
	// Shown and RefuseButtons.
	Questions bool
	// Stream, if not nil, is where previews are streams.
	Stream *Stream
	// Photos means that the remote has RefusePhoto and Data.
	Photos bool
	// GoneID is the id of a message of the first chat that does not exist, "" for a platform without replies.
	GoneID string
	// Lane, if the remote has Fail, returns the address of one more chat, which need not exist.
	Lane func(i int) string
	// Mentions reports whether a part pings users; nil if no part can.
	Mentions func(text string) bool
}

// Stream is a thread of the first chat in which a user asks, and the address of that user. A preview there may lack the
// button.
type Stream struct{ Thread, Asker string }

// Remote is the other side of the platform, mostly a fake.
type Remote struct {
	// Connect makes a platform for this remote; the shell is started more than once.
	Connect func() adapter.Platform
	// Run is an adapter without the shell: it delivers the rows of the platform in a database until ctx ends, and calls
	// settled for every row whose end it has stored. It is used in place of Connect and Listen.
	Run func(ctx context.Context, database string, settled func(id int64)) error
	// Listen makes the listener to this remote; nil for a platform without one.
	Listen func() adapter.Listener
	// SetOutage begins an outage of the remote, in place of the one before. The zero Outage is its end.
	SetOutage func(Outage)
	// Requests counts the requests that have arrived, those that an outage answered too; nil if it is not known.
	Requests func() int
	// Write makes a user write a text, always in the same chat.
	Write func(text string)
	// FloodAccount refuses every send of the account for a time. Asked counts the sends that it was asked for.
	FloodAccount func(time.Duration)
	Asked        func() int
	// CloseThread and DeleteThread end Platform.Thread.
	CloseThread, DeleteThread func()
	// RefusePhoto makes the remote refuse a picture in the form in which it is sent first. It returns the picture, and
	// a text that the remote's refusal contains.
	RefusePhoto func() (picture []byte, reason string)
	// Shown lists the messages of the bot in the first chat as users see them now, in order.
	Shown func() []Shown
	// RefuseButtons makes the remote refuse the buttons of the next part.
	RefuseButtons func()
	// FailEdit injects a fault for the next edit of a message.
	FailEdit func(Fault)
	// Delete deletes a message of the first chat, as an administrator may.
	Delete func(id string)
	// Data is the data folder of the platforms that Connect makes, "" if none of them reads files.
	Data string
	// Settled, if not nil, is called for every row whose end is stored, as the adapter's daemon does.
	Settled func(*msg.Message)
	// Received lists the parts that have arrived, in order.
	Received func() []Received
	// Fail injects a fault for the next part for a chat, in place of the one before. The zero Fault is none. nil if
	// nothing can fail.
	Fail func(chatJID string, f Fault)
}

// Received is a part as it arrived.
type Received struct {
	ChatJID string
	Thread  string
	ReplyTo string // the platform's id of the message it replies to
	Text    string // as users see it
	File    string // the name of its file, "" for none
}

// Fault is a fault of a remote.
type Fault struct {
	Class   msg.ErrorClass
	After   time.Duration // of a rate fault
	Arrived bool          // of an ambiguous fault: the part is there
	Hangs   bool          // the call is not answered, as long as it is made
}

// leftover is how long libraries may take to end the goroutines of a shell that has stopped.
const leftover = time.Minute

// Run runs all cases, each in a bubble of testing/synctest: a remote must not use the machine's
// network, which keeps the bubble's clock from advancing. With names it runs only the cases of these names: for
// another remote of the same platform.
func Run(t *testing.T, p Platform, names ...string) {
	for _, name := range names {
		if !slices.ContainsFunc(cases(), func(c testCase) bool { return c.name == name }) {
			t.Fatalf("no case %q", name)
		}
	}
	for _, c := range cases() {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.applies == nil || c.applies(p) {
				synctest.Test(t, func(t *testing.T) {
					t.Cleanup(func() { <-time.After(leftover) })
					c.run(newFixture(t, p))
				})
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
	shell := func(p Platform) bool { return !p.Foreign }
	redacts := func(p Platform) bool { return !p.Raw }
	mentions := func(p Platform) bool { return p.Mentions != nil }
	return append(slices.Concat(outageCases(), refusalCases(), previewCases(), questionCases(),
		undoCases(), inboundCases()), []testCase{
		{"text in order", nil, textInOrder},
		{"long text", nil, longText},
		{"two chats", nil, twoChats},
		{"reply", replies, reply},
		{"thread", threads, thread},
		{"permanent failure", nil, permanentFailure},
		{"rate failure", shell, rateFailure},
		{"transient failure", nil, transientFailure},
		{"ambiguous failure", nil, ambiguousFailure},
		{"crash before the record", shell, crashBeforeTheRecord},
		{"crash before the send", shell, crashBeforeTheSend},
		{"stop in the middle", nil, stopInTheMiddle},
		{"cancelled row", nil, cancelledRow},
		{"odd content", nil, oddContent},
		{"secrets", redacts, secrets},
		{"mentions", mentions, massMentions},
	}...)
}
