package platforms

import (
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/testkit/fakes/telegram"
)

// The subscribers of a channel who write to it are strangers to each other: they share neither a chat, nor a session, nor a pin,
// though one route leads all of them to one group.
func TestTelegram_DirectMessagesOfChannel_SubscribersShareNothing(t *testing.T) {
	t.Parallel()
	w := chatsim.NewTelegram(chatsim.Size{}, telegramOptions())
	i := newInstance(t)
	i.Instance.Env = append(i.Instance.Env, "AGENT_COMMAND="+harness.Recording+"exec "+i.Instance.Program("demo"))
	f := i.serve(w)
	i.start("routd", "gated", "teled")
	i.AddGroups("main", "main/eng")
	i.AddRoute("platform=telegram", "main")
	alice, bob := w.User("Alice", "alice"), w.User("Bob", "bob")
	chat := w.DirectMessages("News")
	ofAlice, ofBob := chat.Subscriber(alice), chat.Subscriber(bob)
	answered := func(at telegram.Place, by telegram.User, text, inTopic string) {
		t.Helper()
		at.Say(by, text)
		f.Until("an answer to "+text, func() bool {
			return slices.ContainsFunc(chat.Messages(), func(m telegram.Message) bool {
				return m.From.IsBot && m.DirectTopic.ID == at.DirectID && strings.Contains(m.Text, echo(text))
			})
		})
		f.WaitIdle()
		got := f.Value(`SELECT t.topic FROM turns t JOIN messages m ON m.turn_id = t.id AND m.direction = 'in' WHERE m.content = ?`, text)
		if got != inTopic {
			t.Errorf("%q runs in topic %q, want %q", text, got, inTopic)
		}
	}
	topicOf := func(u telegram.User) string {
		return f.Value(`SELECT thread_id FROM messages WHERE sender_name = ? LIMIT 1`, u.FirstName)
	}
	ofAlice.Say(alice, "silent my PIN is 1234")
	f.waitStored("silent my PIN is 1234")
	f.WaitIdle()
	ofAlice.Say(alice, "#deploy")
	f.waitStored("#deploy")
	ofBob.Say(bob, "silent hello")
	f.waitStored("silent hello")
	f.WaitIdle()
	answered(ofAlice, alice, "what is my PIN?", "#deploy")
	before := len(f.AgentInput("main"))
	answered(ofBob, bob, "what is the PIN?", topicOf(bob))
	if prompt := f.AgentInput("main"); len(prompt) <= before || strings.Contains(prompt[before:], "1234") {
		t.Errorf("another's words are in the prompt, or it is not recorded: %q", prompt[min(before, len(prompt)):])
	}
	if got := f.Value(`SELECT count(*) || ' ' || count(DISTINCT kind) || ' ' || max(kind) FROM chats WHERE jid LIKE '%.%'`); got != "2 1 dm" {
		t.Errorf("chats and kinds: %s", got)
	}
}
