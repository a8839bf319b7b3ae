package platforms

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/need"
)

// The backfill is longer than one page, and covers a channel, a thread and a direct message.
func TestDiscord_MessagesWhileDown_AreBackfilledInOrder(t *testing.T) {
	t.Parallel()
	f := start(t, newDiscord())
	channel, thread := f.NewGroup("general"), f.NewThread("deploys")
	f.say(channel, "good morning")
	f.waitStored("good morning")
	f.Kill("discd")
	const count = 120 // more than the page of 100 messages that Discord returns
	for n := range count {
		f.say(channel, fmt.Sprintf("heard %d", n))
	}
	f.ask(thread, "are you there?")
	f.say(f.dm, "hello?")
	f.Restart("discd")
	f.wantOneAnswerEach([]string{"are you there?", "hello?"})
	f.Until("all messages to be stored", func() bool {
		return f.Value(`SELECT count(*) FROM messages WHERE content LIKE 'heard %'`) == fmt.Sprint(count)
	})
	if n := f.Value(`SELECT count(*) FROM messages a JOIN messages b ON a.id < b.id
		WHERE a.content LIKE 'heard %' AND b.content LIKE 'heard %' AND CAST(substr(a.content, 7) AS INTEGER) > CAST(substr(b.content, 7) AS INTEGER)`); n != "0" {
		t.Errorf("%s pairs are out of order", n)
	}
}

func TestDiscord_SlashCommand_IsAnswered(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	w := chatsim.NewDiscord(chatsim.Size{}, discordOptions())
	f := start(t, w)
	alice := w.User("Carol", "carol")
	general := w.Guild("Team", alice).Channel("general")
	f.Until("the command to be registered", func() bool { // discd registers one after another
		return slices.ContainsFunc(w.Commands(), func(c discord.Command) bool { return c.Name == "ping" })
	})
	command := general.Command(alice, "ping", "")
	f.Until("the interaction to be acknowledged", func() bool { return w.Answered(command) })
	f.Until("the reply to arrive", func() bool {
		for _, m := range general.Messages() {
			if strings.Contains(m.Content, "pong") {
				return true
			}
		}
		return false
	})
}
