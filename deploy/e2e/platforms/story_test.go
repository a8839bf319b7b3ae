package platforms

import (
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

func TestFromAMentionToAnEngagedThread(t *testing.T) { each(t, story) }

// story is what people expect of a bot on any platform.
func story(f *front) {
	group := f.NewGroup("team")
	f.say(group, "good morning")
	asked := f.call(group, "what broke?")
	talk := group
	if !f.about.LinksReplies {
		talk.Thread = asked
	}
	if a := f.answered("what broke?", talk, f.about.Group); f.about.LinksReplies && a.ReplyTo != asked {
		f.t.Errorf("the answer is linked to %q, not to %q", a.ReplyTo, asked)
	}
	f.say(talk, "and who did it?")
	f.answered("and who did it?", talk, f.about.Group)

	thread := f.NewThread("deploys")
	f.call(thread, "ship it")
	f.answered("ship it", thread, f.about.Thread)
	f.say(thread, "how far?")
	f.answered("how far?", thread, f.about.Thread)
	f.say(chatsim.Conversation{Chat: thread.Chat}, "lunch?")
	f.until("what is said beside the thread is only heard", func() bool {
		return f.value(`SELECT disposition || '/' || reason FROM messages WHERE content = 'lunch?'`) == "observed/route_observe"
	})

	f.say(thread, "slow 1 think")
	f.until("people see that it thinks", func() bool { return f.ShowsWorking(thread) })
	f.down(f.about.Daemon)
	f.say(thread, "still there?")
	f.up(f.about.Daemon)
	f.answered("slow 1 think", thread, f.about.Thread)
	f.answered("still there?", thread, f.about.Thread)
	f.say(talk, "and here?")
	f.answered("and here?", talk, f.about.Group)
	f.onceEach([]string{"what broke?", "and who did it?", "ship it", "how far?", "slow 1 think", "still there?", "and here?"})
	if n := f.value(`SELECT count(DISTINCT session_id) FROM sessions WHERE topic IN (?, ?)`, talk.Thread, thread.Thread); n != "2" {
		f.t.Errorf("the group and the thread have %s sessions", n)
	}
}

// TestAReplyToTheBotIsAnswered is about what the bot said by itself, in a group in which nobody has
// called it.
func TestAReplyToTheBotIsAnswered(t *testing.T) {
	each(t, func(f *front) {
		group := f.NewGroup("team")
		f.say(group, "good morning")
		f.stored("good morning")
		f.put(msg.Message{ChatJID: group.Chat, Content: "news of the day"})
		news := f.arrived("news of the day")
		f.do(chatsim.Action{Conversation: group, Verb: msg.VerbReply, Text: "who did it?", Target: news.ID})
		if !f.about.LinksReplies {
			group.Thread = news.ID
		}
		f.answered("who did it?", group, f.about.Group)
	})
}
