package outbound

import (
	"fmt"
	"testing"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// marksFixture is a channel whose messages get marks.
type marksFixture struct {
	*searchFixture
	t    *testing.T
	runs int
}

func newMarksFixture(t *testing.T) *marksFixture {
	t.Helper()
	return &marksFixture{searchFixture: newSearchFixture(t, fake.Options{}), t: t}
}

func (b *marksFixture) chat() string { return "slack:" + b.ChannelID }

func (b *marksFixture) say() (ts string) { return b.Say(b.alice, "do something").TS }

// works makes an agent work on a message in a thread of the chat until end is called.
func (b *marksFixture) works(thread, platformID string) (end func()) {
	b.t.Helper()
	b.runs++
	return gatedtest.Work(b.t, b.Store, b.chat(), thread, fmt.Sprint("#", b.runs), platformID)
}

// show updates the marks of a thread, and compares the marked messages with those expected.
func (b *marksFixture) show(thread string, want ...string) {
	b.t.Helper()
	if err := b.showWorking(b.t.Context(), store.Lane{ChatJID: b.chat(), ThreadID: thread}, true); err != nil {
		b.t.Errorf("show: %v", err)
	}
	b.marked(want...)
}

func (b *marksFixture) sweep(want ...string) {
	b.t.Helper()
	if err := b.RemoveStaleMarks(b.t.Context()); err != nil {
		b.t.Errorf("sweep: %v", err)
	}
	b.marked(want...)
}

// marked compares the marked messages with those expected.
func (b *marksFixture) marked(want ...string) {
	b.t.Helper()
	var got []string
	for _, m := range b.Messages() {
		if b.Reactions(m.TS)[markEmoji] != nil {
			got = append(got, m.TS)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("marked (-want +got):\n%s", diff)
	}
}

// left is how many marks are recorded.
func (b *marksFixture) left() int {
	b.t.Helper()
	all, err := b.Store.DaemonCursors(b.t.Context(), "slakd", markPrefix)
	if err != nil {
		b.t.Fatal(err)
	}
	return len(all)
}

func TestMarks_FollowTurns(t *testing.T) {
	b := newMarksFixture(t)
	one, two := b.say(), b.say()
	b.show("")
	end := b.works("", one)
	b.show("", one)
	calls := len(b.server.Calls())
	b.show("", one)
	if len(b.server.Calls()) != calls {
		t.Error("it is marked twice")
	}
	end()
	end = b.works("", two+":e:1.3") // the next turn, before the marks were updated
	b.show("", two)
	b.show("1.0", two)
	end()
	b.show("")
	if b.left() > 0 {
		t.Error("a mark is still recorded")
	}
}

func TestMarks_CommandWithoutMessage_MarksNothing(t *testing.T) {
	b := newMarksFixture(t)
	b.works("", "slash:7.8.ab")
	b.show("")
	if calls := b.server.Calls(); len(calls) > 0 || b.left() > 0 {
		t.Errorf("called %+v", calls)
	}
}

func TestMarks_StayRecordedUntilRemoved(t *testing.T) {
	b := newMarksFixture(t)
	one, two := b.say(), b.say()
	end, other := b.works("", one), b.works("1.0", two)
	b.server.InjectFault(fake.Fault{Method: "reactions.add", Drop: true, After: true})
	if err := b.showWorking(t.Context(), store.Lane{ChatJID: b.chat()}, true); err == nil {
		t.Error("a broken connection is no error")
	}
	b.show("1.0", one, two)
	end()
	b.server.InjectFault(fake.Fault{Method: "reactions.remove", Status: 503, Times: 2})
	for range 2 {
		if err := b.RemoveStaleMarks(t.Context()); err == nil {
			t.Error("a server error is no error")
		}
		b.marked(one, two)
	}
	b.sweep(two)
	other()
	b.sweep()
	b.sweep()
	if b.left() > 0 {
		t.Error("a mark is still recorded")
	}
}

func TestMarks_MessageDeleted_RecordIsDeleted(t *testing.T) {
	b := newMarksFixture(t)
	ts := b.say()
	end := b.works("", ts)
	b.show("", ts)
	b.Delete(b.alice, ts)
	end()
	b.sweep()
	if b.left() > 0 {
		t.Error("a mark is still recorded")
	}
}

func TestStatus_InPane(t *testing.T) {
	b := newMarksFixture(t)
	pane := b.server.OpenPane(b.alice, fake.Place{})
	in := store.Lane{ChatJID: "slack:" + pane.ChannelID, ThreadID: pane.ThreadTS}
	for _, working := range []bool{true, true, false, false} {
		if err := b.showWorking(t.Context(), in, working); err != nil {
			t.Error(err)
		}
		if got := pane.Pane().Status; (got == status) != working || (got == "") == working {
			t.Errorf("the status is %q", got)
		}
	}
}

// Where Slack accepts no status, the message has a mark, and Slack is not asked again.
func TestStatus_Refused_MarksTheMessage(t *testing.T) {
	b := newMarksFixture(t)
	b.Place = b.server.DM(b.alice)
	ts := b.say()
	thread := b.Reply(b.alice, ts, "in a thread").TS
	b.server.InjectFault(fake.Fault{Method: "assistant.threads.setStatus", Error: "invalid_thread_ts", Times: -1})
	end := b.works(ts, thread)
	b.show(ts, thread)
	b.show(ts, thread)
	asked := 0
	for _, c := range b.server.Calls() {
		if c.Method == "assistant.threads.setStatus" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	end()
	b.show(ts)
	if b.left() > 0 {
		t.Error("a mark is still recorded")
	}
}

// The mark of a message that waited is the same reaction: when an agent begins, it stays until the work ends.
func TestMarks_MarkOfWaitingRemoved_StaysWhileAgentsWork(t *testing.T) {
	b := newMarksFixture(t)
	one := b.say()
	send := func(content string) {
		t.Helper()
		m := &msg.Message{ID: 9, ChatJID: b.chat(), Kind: msg.KindReaction, Content: content, TargetID: one}
		parts, err := b.Cut(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Send(t.Context(), m, parts[0]); err != nil {
			t.Fatal(err)
		}
	}
	send("👀")
	b.marked(one)
	send("-👀")
	b.marked()
	send("👀")
	end := b.works("", one)
	b.show("", one)
	send("-👀")
	b.marked(one)
	end()
	b.show("")
}
