package main

import (
	"strings"
	"testing"

	fake "arizuko/pkg/testkit/fakes/slack"
)

// threadWithoutBot is a thread of Bob with a reply of Alice, in a channel without the bot.
func (r *harness) threadWithoutBot() (room fake.Place, root, reply fake.Message) {
	room = r.ChannelWithoutBot("new", r.alice, r.bob)
	root = room.Say(r.bob, "what about this?")
	return room, root, room.Reply(r.alice, root.TS, "looks odd")
}

// The agent knows what was written in a thread before its first mention there.
func TestInbound_FirstMentionInThread_QuotesTheThread(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	room, root, earlier := r.threadWithoutBot()
	r.Serve()
	r.connected()
	room.InviteBot(r.alice)
	room.Reply(r.alice, root.TS, r.Me().Mention()+" what do you think?")
	room.Reply(r.alice, root.TS, r.Me().Mention()+" please")
	r.confirmed()
	r.stored(room, "join Alice: added the bot", "mention Alice: what do you think?", "mention Alice: please")
	jid := "slack:" + room.ChannelID
	first, err := r.Store.MessageByPlatformID(t.Context(), jid, root.TS)
	if err != nil || first == nil || first.Content != "what about this?" || first.Reason != "quoted" || first.SenderName != "Bob" {
		t.Errorf("the thread's first post: %+v, %v", first, err)
	}
	if reply, err := r.Store.MessageByPlatformID(t.Context(), jid, earlier.TS); err != nil || reply == nil || reply.ThreadID != root.TS {
		t.Errorf("an earlier reply: %+v, %v", reply, err)
	}
	if asked := r.asked("conversations.replies"); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// asked counts the calls of a method.
func (r *harness) asked(method string) (count int) {
	for _, c := range r.Calls() {
		if c.Method == method {
			count++
		}
	}
	return count
}

// A thread whose first post makes no row, since it is deleted, is asked for once.
func TestInbound_ThreadWithoutRoot_IsAskedForOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	room, root, earlier := r.threadWithoutBot()
	room.Delete(r.bob, root.TS)
	r.readUp(1)
	room.InviteBot(r.alice)
	r.confirmed()
	before := r.asked("conversations.replies")
	first := room.Reply(r.alice, root.TS, r.Me().Mention()+" what do you think?")
	room.Reply(r.alice, root.TS, r.Me().Mention()+" please")
	room.Reply(r.alice, root.TS, r.Me().Mention()+" now")
	r.confirmed()
	r.stored(room, "join Alice: added the bot", "mention Alice: what do you think?", "mention Alice: please", "mention Alice: now")
	jid := "slack:" + room.ChannelID
	if reply, err := r.Store.MessageByPlatformID(t.Context(), jid, earlier.TS); err != nil || reply == nil || reply.Reason != "quoted" {
		t.Errorf("an earlier reply: %+v, %v", reply, err)
	}
	if asked := r.asked("conversations.replies") - before; asked != 1 {
		t.Errorf("asked %d times for the thread of %s", asked, first.TS)
	}
}

// Of a long thread the last replies are known, not the first.
func TestInbound_LongThread_QuotesTheLastReplies(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	room := r.ChannelWithoutBot("long", r.alice)
	root := room.Say(r.alice, "root")
	var replies []string
	for range 260 {
		replies = append(replies, room.Reply(r.alice, root.TS, "reply").TS)
	}
	stop := r.readUp(1)
	stop()
	room.InviteBot(r.alice)
	room.Broadcast(r.alice, root.TS, r.Me().Mention()+" what do you think?")
	r.missedMeanwhile()
	r.readUp(2)
	for _, tt := range []struct {
		ts    string
		known bool
	}{{root.TS, true}, {replies[259], true}, {replies[210], true}, {replies[209], false}, {replies[150], false}} {
		m, err := r.Store.MessageByPlatformID(t.Context(), "slack:"+room.ChannelID, tt.ts)
		if err != nil || (m != nil) != tt.known {
			t.Errorf("message %s: %+v, %v, known is to be %v", tt.ts, m, err, tt.known)
		}
	}
}

func TestInbound_CommandWithoutMembership_SaysSo(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	room := r.ChannelWithoutBot("foreign", r.alice)
	r.Serve()
	r.connected()
	room.Command(r.alice, "/arizuko", "new hello")
	r.confirmed()
	if shown := room.Ephemeral(); len(shown) != 1 || !strings.Contains(shown[0].Text, "Nothing was done") {
		t.Errorf("shown: %+v", shown)
	}
	if rows := r.rows(room); len(rows) != 0 {
		t.Errorf("rows: %q", rows)
	}
}
