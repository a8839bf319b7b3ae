package platforms

import (
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

func TestConversation_MentionThenThread_AnsweredInPlace(t *testing.T) {
	onEachPlatform(t, conversation)
}

// conversation is the behaviour that users expect of a bot on any platform: a mention in a group, the messages
// after it, a thread beside it with its own session, and an adapter that is killed meanwhile.
func conversation(f *fixture) {
	group := f.NewGroup("team")
	f.say(group, "good morning")
	asked := f.ask(group, "what broke?")
	talk := group
	if !f.info.LinksReplies {
		talk.Thread = asked
	}
	if a := f.wantAnswer("what broke?", talk, f.info.Group); f.info.LinksReplies && a.ReplyTo != asked {
		f.T.Errorf("the answer is linked to %q, not to %q", a.ReplyTo, asked)
	}
	f.say(talk, "and who did it?")
	f.wantAnswer("and who did it?", talk, f.info.Group)

	thread := f.NewThread("deploys")
	f.ask(thread, "ship it")
	f.wantAnswer("ship it", thread, f.info.Thread)
	f.say(thread, "how far?")
	f.wantAnswer("how far?", thread, f.info.Thread)
	f.say(chatsim.Conversation{Chat: thread.Chat}, "lunch?")
	f.Until("the message outside of the thread to be observed", func() bool {
		return f.Value(`SELECT disposition || '/' || reason FROM messages WHERE content = 'lunch?'`) == "observed/route_observe"
	})

	f.say(thread, "until go think")
	f.Until("the working sign", func() bool { return f.ShowsWorking(thread) })
	f.Kill(f.info.Daemon)
	f.say(thread, "still there?")
	f.LetGo("main", "go")
	f.Restart(f.info.Daemon)
	f.wantAnswer("until go think", thread, f.info.Thread)
	f.wantAnswer("still there?", thread, f.info.Thread)
	f.say(talk, "and here?")
	f.wantAnswer("and here?", talk, f.info.Group)
	f.wantOneAnswerEach([]string{"what broke?", "and who did it?", "ship it", "how far?", "until go think", "still there?", "and here?"})
	if n := f.Value(`SELECT count(DISTINCT session_id) FROM sessions WHERE topic IN (?, ?)`, talk.Thread, thread.Thread); n != "2" {
		f.T.Errorf("the group and the thread have %s sessions, want 2", n)
	}
}

// The bot wrote by itself, in a group in which it was never mentioned.
func TestReply_ToUnpromptedMessage_IsAnswered(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		group := f.NewGroup("team")
		f.say(group, "good morning")
		f.waitStored("good morning")
		f.putOutbound(msg.Message{ChatJID: group.Chat, Content: "news of the day"})
		news := f.waitArrival("news of the day")
		f.do(chatsim.Action{Conversation: group, Verb: msg.VerbReply, Text: "who did it?", Target: news.ID})
		if !f.info.LinksReplies {
			group.Thread = news.ID
		}
		f.wantAnswer("who did it?", group, f.info.Group)
	})
}
