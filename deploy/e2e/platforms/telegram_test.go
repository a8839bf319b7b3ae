package platforms

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/telegram"
	"arizuko/pkg/testkit/need"
)

// The migration happens between a question and its answer.
func TestTelegram_GroupBecomesSupergroup_AnsweredThere(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	w := chatsim.NewTelegram(chatsim.Size{}, telegramOptions())
	f := start(t, w)
	alice := w.User("Alice", "alice")
	group := w.Group("Team", alice)
	group.AddBot(alice)
	group.Say(alice, "@"+w.Me().Username+" until go before")
	f.waitRunning(chatsim.Conversation{Chat: fmt.Sprintf("telegram:%d", group.ChatID)})
	super := group.Migrate(alice)
	f.LetGo("main", "go")
	there := chatsim.Conversation{Chat: fmt.Sprintf("telegram:%d", super.ChatID)}
	f.wantAnswer("until go before", there, f.info.Group)
	super.Say(alice, "and after?")
	f.wantAnswer("and after?", there, f.info.Group)
	f.wantOneAnswerEach([]string{"until go before", "and after?"})
}

// What users send as one thing is one turn, and what they answer is in its prompt, though the bot in privacy mode has
// not seen it.
func TestTelegram_WhatUsersSend_ArrivesWhole(t *testing.T) {
	t.Parallel()
	w := chatsim.NewTelegram(chatsim.Size{}, telegramOptions())
	i := newInstance(t)
	i.Instance.Env = append(i.Instance.Env, "AGENT_COMMAND="+harness.Recording+"exec "+i.Instance.Program("demo"))
	f := i.serve(w)
	i.start("routd", "gated", "teled")
	i.connect()
	w.SetPrivacy(true)
	alice, bob := w.User("Alice", "alice"), w.User("Bob", "bob")
	group := w.Supergroup("Team", alice, bob)
	group.AddBot(alice)
	unseen := group.Say(bob, "the invoice of May is wrong, by ten")
	group.Reply(alice, unseen.ID, "@"+w.Me().Username+" what about this?")
	f.wantAnswer("what about this?", chatsim.Conversation{Chat: fmt.Sprintf("telegram:%d", group.ChatID)}, f.info.Group)
	if got := f.Value(`SELECT reason FROM messages WHERE content LIKE 'the invoice of May%'`); got != string(msg.ReasonQuoted) {
		t.Errorf("the answered post is %q", got)
	}
	if !strings.Contains(f.AgentInput("main"), "the invoice of May is wrong") {
		t.Error("the prompt lacks the answered post")
	}

	dm := w.DM(alice)
	chat := fmt.Sprintf("telegram:%d", dm.ChatID)
	turns := func() string {
		return f.Value(`SELECT count(*) || ' turns of ' || (SELECT count(*) FROM messages WHERE chat_jid = ?1 AND turn_id IS NOT NULL AND direction = 'in')
			FROM turns WHERE chat_jid = ?1 AND state = 'done'`, chat)
	}
	// gated is held up, so that it finds the pieces together: it waits a second for a further one.
	together := func(rows string, send func()) {
		f.Suspend(harness.Gated)
		send()
		f.Until(rows+" rows", func() bool {
			return f.Value(`SELECT count(*) FROM messages WHERE chat_jid = ? AND direction = 'in'`, chat) == rows
		})
		f.Resume(harness.Gated)
	}
	together("2", func() {
		dm.Album(alice, "two pictures", telegram.Attachment{Kind: "photo", Name: "a.png", Data: []byte("a")}, telegram.Attachment{Kind: "photo", Name: "b.png", Data: []byte("b")})
	})
	f.Until("the album to be one turn", func() bool { return turns() == "1 turns of 2" })
	together("4", func() { dm.Paste(alice, strings.Repeat("a long text ", 500)) })
	f.Until("the paste to be one turn", func() bool { return turns() == "2 turns of 4" })
	if got := len(dm.Menu(alice)); got != len(msg.GatewayCommands()) {
		t.Errorf("the menu has %d commands", got)
	}
}
