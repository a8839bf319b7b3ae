package platforms

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// TestOnboarding_UnknownChats_ApprovedInChat: an operator connects a direct chat and a group, and
// rejects a third chat, all by commands in the operator's own chat.
func TestOnboarding_UnknownChats_ApprovedInChat(t *testing.T) {
	onEach(t, func(t *testing.T, newPlatform func() chatsim.Platform) {
		onboarding(newInstance(t).serve(newPlatform()))
	})
}

func onboarding(f *fixture) {
	f.start(harness.Routd, f.info.Daemon)
	f.waitConnection("connected")
	command := func(text string) string { return msg.CommandIn(f.dm.Chat, text) } // as notices write it
	f.say(f.dm, command("ping"))
	f.waitStored(command("ping"))
	f.Instance.Env = append(f.Instance.Env, "OPERATORS="+f.Value(`SELECT sender FROM messages WHERE content = ?`, command("ping")))
	f.Restart(harness.Gated)
	f.Restart(harness.Onbod)
	f.waitArrival("pong")

	ada := f.NewDM("Ada")
	f.say(ada, "one")
	code := f.waitCode("one")
	f.waitArrivalIn(ada, code)                      // the notice
	f.waitArrivalIn(f.dm, command("approve "+code)) // and the operator's
	f.say(ada, "two")
	f.waitParked("two")
	f.say(f.dm, command("approve "+code))
	f.waitArrivalIn(f.dm, "new group")
	f.wantAnswer("one", ada, f.info.DM)
	f.wantAnswer("two", ada, f.info.DM)

	group := f.NewGroup("team")
	f.ask(group, "what broke?")
	code = f.waitCode("what broke?")
	f.waitArrivalIn(f.dm, code)
	f.say(f.dm, command("approve "+code+" team"))
	f.waitAnswer("what broke?")

	eve := f.NewDM("Eve")
	f.say(eve, "let me in")
	code = f.waitCode("let me in")
	f.say(f.dm, command("reject "+code+" not now"))
	f.waitArrivalIn(eve, "not now")
	f.Until("the message to be dropped", func() bool {
		return f.Value(`SELECT disposition || '/' || reason FROM messages WHERE content = 'let me in'`) == "dropped/rejected"
	})
	f.wantOneAnswerEach([]string{"one", "two", "what broke?"})
	if plain, _ := f.copies("let me in"); plain != 0 {
		f.T.Error("the rejected chat got an answer")
	}
}

// waitCode waits until a message is parked, and returns the code of its chat's request.
func (f *fixture) waitCode(text string) (code string) {
	f.T.Helper()
	f.waitParked(text)
	return f.Value(`SELECT code FROM onboarding_requests r JOIN messages m ON m.chat_jid = r.chat_jid WHERE r.state = 'pending' AND m.content = ?`, text)
}

func (f *fixture) waitParked(text string) {
	f.T.Helper()
	f.Until(fmt.Sprintf("%q to be parked", text), func() bool {
		return f.Value(`SELECT disposition FROM messages WHERE direction = 'in' AND content = ?`, text) == string(msg.Onboarding)
	})
}

// waitArrivalIn waits for a message of the bot in a chat that contains a text.
func (f *fixture) waitArrivalIn(in chatsim.Conversation, text string) {
	f.T.Helper()
	f.Until(fmt.Sprintf("%q to arrive in %s", text, in.Chat), func() bool {
		return slices.ContainsFunc(f.Arrivals(), func(a chatsim.Arrival) bool { return a.Chat == in.Chat && strings.Contains(a.Text, text) })
	})
}
