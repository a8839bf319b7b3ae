package outbound

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/discord"
)

// forked makes a row for a thread at the channel's first message, which may be a fork's.
func (b *senderFixture) forked(t *testing.T, exists bool) (*msg.Message, adapter.Part) {
	t.Helper()
	thread := b.channel.Messages()[0].ID
	m, part := b.row(t, msg.Message{Content: "when then?", ThreadID: thread})
	known, err := b.Store.Fork(t.Context(), m.ChatJID, "#deploy#fix")
	if err == nil && exists && known == nil {
		fork := &msg.Fork{ChatJID: m.ChatJID, Topic: "#deploy#fix", ThreadID: thread, OwnThread: true, MessageID: m.ID}
		err = b.Store.Write(t.Context(), func(tx *store.Tx) error { return gatedtest.PutFork(tx, fork) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, part
}

func TestSend_ForkWithoutThread_CreatesItOnce(t *testing.T) {
	b := newSenderFixture(t)
	m, part := b.forked(t, true)
	b.send(t, m, part)
	if threads := b.channel.Threads(); len(threads) != 2 || threads[1].ID != m.ThreadID && threads[0].ID != m.ThreadID {
		t.Fatalf("threads: %+v", threads)
	}
	m, part = b.forked(t, true)
	b.send(t, m, part)
	sent := b.Sent()
	if len(sent) != 3 || sent[0].Route != fake.StartThreadFromMessage || sent[1].ChannelID != m.ThreadID || sent[2].ChannelID != m.ThreadID {
		t.Errorf("sent: %+v", sent)
	}
}

// A crash between the thread and its first message, and calls whose answers are lost.
func TestSend_ForkWithoutThread_Retries(t *testing.T) {
	for _, route := range []string{fake.StartThreadFromMessage, fake.CreateMessage} {
		b := newSenderFixture(t)
		m, part := b.forked(t, true)
		b.InjectFault(fake.Fault{Route: route, Status: http.StatusBadGateway, After: true})
		for range 3 {
			if _, err := adaptertest.Send(t.Context(), b.Sender, m, part); err == nil {
				break
			}
		}
		if threads := b.channel.Threads(); len(threads) != 2 || b.made() != 1 {
			t.Errorf("%s: %d threads, %d messages", route, len(threads), b.made())
		}
	}
}

// The row goes to the channel of the thread, says so, and is found there after a crash. A fork is over, and its group
// reads of it.
func TestSend_ThreadTakesNothing_GoesToItsChannel(t *testing.T) {
	forked := func(refuse func(b *senderFixture)) func(*testing.T, *senderFixture) string {
		return func(t *testing.T, b *senderFixture) string {
			m, _ := b.forked(t, true)
			refuse(b)
			return m.ThreadID
		}
	}
	closed := func(archived bool) func(*testing.T, *senderFixture) string {
		return func(_ *testing.T, b *senderFixture) string {
			b.thread.Archive(archived, true)
			return b.thread.ChannelID
		}
	}
	for name, test := range map[string]struct {
		thread       func(*testing.T, *senderFixture) string
		remark, note string
	}{
		"unknown": {func(_ *testing.T, b *senderFixture) string { return b.channel.Messages()[0].ID }, "the thread is ", "(the thread is gone) "},
		"locked":  {closed(false), "the thread is ", "is closed) "}, "locked and archived": {closed(true), "the thread is ", "is closed) "},
		"fork, its message deleted": {forked(func(b *senderFixture) { b.channel.Delete(b.channel.Messages()[0].ID) }),
			"the thread could not be opened: ", "(the thread could not be opened) "},
		"fork, no permission": {forked(func(b *senderFixture) {
			b.InjectFault(fake.Fault{Route: fake.StartThreadFromMessage, Status: http.StatusForbidden, Code: noPermission})
		}), "the thread could not be opened: ", "(the thread could not be opened) "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSenderFixture(t)
			m, part := b.row(t, msg.Message{Content: "an answer", ThreadID: test.thread(t, b), ReplyToID: "5"})
			id, err := adaptertest.Send(t.Context(), b, m, part)
			var remark *adapter.Remark
			if !errors.As(err, &remark) || !strings.HasPrefix(remark.Text, "sent to the channel: "+test.remark) {
				t.Fatalf("%v", err)
			}
			all := b.channel.Messages()
			last := all[len(all)-1]
			if last.ID != id || !strings.HasSuffix(last.Content, test.note+"an answer") || last.Reference != nil || len(b.channel.Threads()) != 1 {
				t.Errorf("%+v", last)
			}
			fork, err := b.Store.Fork(t.Context(), m.ChatJID, "#deploy#fix")
			if err != nil || fork != nil && fork.EndedAt == 0 {
				t.Errorf("the fork: %+v, %v", fork, err)
			}
			b.time = b.time.Add(nonceLifetime + time.Minute)
			b.find(t, m, part, id, 1)
		})
	}
}

// A thread that does not leave the archive by a message is taken out of it first.
func TestSend_ArchivedThread_IsTakenOut(t *testing.T) {
	b := &senderFixture{time: time.UnixMilli(1795262400000)}
	b.fixture = newFixtureWith(fake.Options{Now: func() time.Time { return b.time }, ArchivedRefuse: true})
	b.start(t)
	b.thread.Archive(true, false)
	m, part := b.row(t, msg.Message{Content: "an answer", ThreadID: b.thread.ChannelID})
	b.send(t, m, part)
	if all := b.thread.Messages(); all[len(all)-1].Content != "an answer" {
		t.Errorf("%+v", all)
	}
}

// A thread is taken out of the archive for an edit or a deletion, too, and not for a reaction.
func TestSend_ChangeInArchivedThread_TakesItOut(t *testing.T) {
	b := newSenderFixture(t)
	m, part := b.row(t, msg.Message{Content: "an answer", ThreadID: b.thread.ChannelID})
	id := b.send(t, m, part)
	archived := func() bool { return b.channel.Threads()[0].Metadata.Archived }
	b.thread.Archive(true, false)
	m, part = b.row(t, msg.Message{Kind: msg.KindReaction, TargetID: id, Content: "👍", ThreadID: b.thread.ChannelID})
	var failure *adapter.Failure
	if _, err := adaptertest.Send(t.Context(), b, m, part); !errors.As(err, &failure) || failure.Class != msg.Permanent || !archived() {
		t.Errorf("a reaction: %v", err)
	}
	m, part = b.row(t, msg.Message{Kind: msg.KindEdit, TargetID: id, Content: "a better answer", ThreadID: b.thread.ChannelID})
	b.send(t, m, part)
	if all := b.thread.Messages(); all[len(all)-1].Content != "a better answer" || archived() {
		t.Errorf("%+v", all)
	}
	b.thread.Archive(true, false)
	m, part = b.row(t, msg.Message{Kind: msg.KindDelete, TargetID: id, ThreadID: b.thread.ChannelID})
	b.send(t, m, part)
	if all := b.thread.Messages(); all[len(all)-1].ID == id {
		t.Errorf("%+v", all)
	}
	b.thread.Archive(true, true)
	m, part = b.row(t, msg.Message{Kind: msg.KindDelete, TargetID: b.thread.Messages()[0].ID, ThreadID: b.thread.ChannelID})
	if _, err := adaptertest.Send(t.Context(), b, m, part); !errors.As(err, &failure) || failure.Class != msg.Permanent {
		t.Errorf("in a locked thread: %v", err)
	}
}

// Before its first message there, so that it hears the answers.
func TestSend_Thread_IsJoinedOnce(t *testing.T) {
	b := newSenderFixture(t)
	for range 2 {
		m, part := b.row(t, msg.Message{Content: "an answer", ThreadID: b.thread.ChannelID})
		b.send(t, m, part)
	}
	var routes []string
	for _, c := range b.Sent() {
		routes = append(routes, c.Route)
	}
	if diff := cmp.Diff([]string{fake.JoinThread, fake.CreateMessage, fake.CreateMessage}, routes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSend_PermissionMissing_IsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		row  msg.Message
		deny fake.Permission
		want string
	}{
		"text":     {msg.Message{Content: "x"}, fake.SendMessages, "Send Messages:"},
		"reaction": {msg.Message{Kind: msg.KindReaction, Content: "👍"}, fake.AddReactions, "Add Reactions"},
		"poll":     {msg.Message{Kind: msg.KindPoll, Content: `{"question":"Lunch?","options":["yes","no"]}`}, fake.SendPolls, "Create Polls"},
	} {
		b := newSenderFixture(t)
		if test.row.Kind == msg.KindReaction {
			test.row.TargetID = b.channel.Messages()[0].ID
		}
		m, part := b.row(t, test.row)
		b.channel.Deny(test.deny)
		if _, err := adaptertest.Send(t.Context(), b, m, part); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFind_ThreadNotCreated_FindsNothing(t *testing.T) {
	b := newSenderFixture(t)
	m, part := b.forked(t, true)
	b.time = b.time.Add(nonceLifetime + time.Minute)
	b.find(t, m, part, "", 0)
}
