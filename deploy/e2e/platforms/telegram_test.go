package platforms

import (
	"encoding/json"
	"fmt"
	"slices"
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

// Another bot takes the place of the first one. Its messages have the numbers of the first one's, and are others.
func TestTelegram_AnotherBotBehindTheDatabase_HasItsOwnMessages(t *testing.T) {
	t.Parallel()
	for name, room := range map[string]func(*chatsim.Telegram, telegram.User) telegram.Place{
		"private chat": func(w *chatsim.Telegram, alice telegram.User) telegram.Place { return w.DM(alice) },
		"basic group": func(w *chatsim.Telegram, alice telegram.User) telegram.Place {
			group := w.Group("Team", alice)
			group.AddBot(alice)
			group.Promote(alice, true) // to get reactions
			return group
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changeBot(t, room)
		})
	}
}

func changeBot(t *testing.T, room func(*chatsim.Telegram, telegram.User) telegram.Place) {
	first := chatsim.NewTelegram(chatsim.Size{}, telegramOptions())
	f := startWith(newInstance(t), first, "caller")
	alice := first.User("Alice", "alice")
	at := room(first, alice)
	ask := func(text string) telegram.Message { return at.Say(alice, "@"+first.Me().Username+" "+text) }
	said := func(text string) (found telegram.Message) {
		t.Helper()
		f.Until(fmt.Sprintf("%q to be said", text), func() bool {
			for _, m := range at.Messages() {
				if found = m; m.From.IsBot && strings.Contains(m.Text, text) {
					return true
				}
			}
			return false
		})
		return found
	}
	want := func(want, query string) {
		t.Helper()
		if got := f.Value(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	pin := ask("my PIN is 1234\nsay of the first bot")
	said("of the first bot")
	for _, text := range []string{"thanks", "and bye"} {
		at.Say(alice, text)
		f.waitStored(text)
	}
	f.WaitIdle()
	unchangeable := fmt.Sprintf("call react {\"message_id\":%s,\"emoji\":\"👎\"}\ncall edit_message {\"message_id\":%s,\"text\":\"x\"}",
		f.Value(`SELECT id FROM messages WHERE content LIKE 'my PIN%'`), f.Value(`SELECT id FROM messages WHERE content = 'of the first bot' AND direction = 'out'`))

	f.Stop(f.info.Daemon)
	f.OK(first.Close())
	o := telegramOptions()
	o.Token = "6" + telegram.DefaultToken[1:]
	second := chatsim.NewTelegram(chatsim.Size{}, o)
	g := f.serve(second)
	g.say(g.dm, "silent hello")
	alice = second.User("Alice", "alice")
	at = room(second, alice)
	asked := ask("are you there?\nsay of the second bot")
	if asked.ID != pin.ID || asked.Chat.ID != pin.Chat.ID {
		t.Fatalf("message %d of %d has not the number of %d of %d", asked.ID, asked.Chat.ID, pin.ID, pin.Chat.ID)
	}
	f.Restart(f.info.Daemon)
	answer := said("of the second bot")
	f.WaitIdle()
	id := func(m telegram.Message) string { return fmt.Sprintf("b%d.%d", second.Me().ID, m.ID) }
	want(id(asked), `SELECT platform_id FROM messages WHERE content LIKE 'are you there?%'`)
	want(id(answer), `SELECT platform_id FROM messages WHERE content = 'of the second bot' AND direction = 'out'`)

	at.Reply(alice, answer.ID, "what?\nsay that")
	said("that")
	at.Edit(alice, asked.ID, "were you there?")
	at.React(alice, answer.ID, "👍")
	changed := ask(strings.Join([]string{
		`call react {"message_id":$this,"emoji":"👍"}`, `call send_message {"text":"at work"}`, `call edit_message {"message_id":$message_id,"text":"nearly done"}`,
		unchangeable, "say all done",
	}, "\n"))
	if text := said("all done").Text; strings.Count(text, "another bot") != 2 {
		t.Errorf("changes of the first bot's messages: %s", text)
	}
	said("nearly done")
	f.waitStored("👍")
	f.WaitIdle()
	want("reply "+id(answer), `SELECT verb || ' ' || reply_to_id FROM messages WHERE content LIKE 'what?%'`)
	want(id(asked), `SELECT target_id FROM messages WHERE verb = 'edit'`)
	want(id(answer), `SELECT target_id FROM messages WHERE verb = 'reaction'`)
	want("0", `SELECT count(*) FROM messages WHERE out_state IN ('failed', 'ambiguous')`)
	if got := at.Reactions(changed.ID)[second.Me().ID]; !slices.Equal(got, []string{"👍"}) {
		t.Errorf("the reaction of the second bot: %q", got)
	}
	if log := f.Log(f.info.Daemon); strings.Count(log, "running as another bot") != 1 {
		t.Error("the change of the bot is not in the log once")
	}
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

	rich := fmt.Sprintf(`{"blocks":[{"type":"heading","size":2,"text":"Trip"},{"type":"paragraph","text":[{"type":"mention","text":"@%s","username":"%[1]s"}," ",
		{"type":"bold","text":"book"}," it"]}]}`, w.Me().Username)
	if _, err := group.Post(alice, telegram.Draft{Rich: json.RawMessage(rich)}); err != nil {
		t.Fatal(err)
	}
	f.Until("the rich message to be a mention with its words", func() bool {
		return f.Value(`SELECT count(*) FROM messages WHERE verb = 'mention' AND turn_id IS NOT NULL AND content = ?`, "## Trip\n\n**book** it") == "1"
	})

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
