package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// asked is a question in a thread of a group chat.
func asked(chat, text string) msg.Message {
	return msg.Message{ChatJID: chat, PlatformID: "q1", ThreadID: "77", Topic: "77", Content: text}
}

// wantInThread waits until the instance is idle, and fails the test unless the thread of a question has got a text in
// exactly one answer.
func wantInThread(f *harness.Fixture, chat, text string) {
	f.T.Helper()
	f.WaitIdle()
	got := f.Query(`SELECT thread_id, topic, ifnull(reply_to_id, '') FROM messages WHERE direction = 'out' AND source = 'agent' AND chat_jid = ? AND content = ?`, chat, text)
	if !slices.Equal(got, []string{"77 77 q1"}) {
		f.T.Errorf("%q arrived in %q, want once in the thread of the question", text, got)
	}
}

func TestDelegateTool_GatedKilled_ChildAnswersOnceInOriginThread(t *testing.T) {
	onEachSide(t, func(f *harness.Fixture, point fp.Point) {
		prompt := "call send_message {\"text\":\"looking\"}\nsay it was the cache"
		killGatedAt(f, point, func() {
			f.Put(asked("telegram:-5", `call delegate {"folder":"main/eng","prompt":`+quoted(prompt)+`}`))
		})
		f.WaitIdle()
		if got := f.Query(`SELECT thread_id, sender FROM messages WHERE source = 'tool' AND direction = 'out' AND content = 'looking'`); !slices.Equal(got, []string{"77 agent:main/eng"}) {
			f.T.Errorf("the child's message: %q", got)
		}
		answers := f.Query(`SELECT content FROM messages WHERE direction = 'out' AND source = 'agent' AND chat_jid = 'telegram:-5' ORDER BY id`)
		slices.Sort(answers)
		if len(answers) != 2 || !strings.HasPrefix(answers[0], "delegate {") || !strings.HasSuffix(answers[1], "\nit was the cache") {
			f.T.Errorf("answers %q", answers)
		}
		if got := f.Query(`SELECT thread_id, topic, reply_to_id FROM messages WHERE source = 'agent' AND content LIKE '%cache'`); !slices.Equal(got, []string{"77 77 q1"}) {
			f.T.Errorf("the child answers in %q", got)
		}
	})
}

// A child asks its parent, and answers in the chat with the parent's answer.
func TestEscalateTool_GatedKilled_AnswerReturnsOnceToAsker(t *testing.T) {
	onEachSide(t, func(f *harness.Fixture, point fp.Point) {
		f.AddRoute("platform=discord", "main/eng")
		killGatedAt(f, point, func() {
			f.Put(asked("discord:5", `call escalate {"prompt":"say say yes, on Friday"}`))
		})
		wantInThread(f, "discord:5", "yes, on Friday")
		if n := len(f.Outbound("discord:5")); n != 2 {
			f.T.Errorf("%d messages in the chat, want the first answer and the last", n)
		}
	})
}

// A child asks its parent, which asks its own parent. The answer comes back the same way.
func TestEscalateTool_TwoLevels_AnswerComesBackTheSameWay(t *testing.T) {
	f := start(t, harness.Options{Agent: caller})
	f.AddRoute("platform=discord", "main/eng/oncall")
	f.Put(asked("discord:5", `call escalate {"prompt":`+quoted(`call escalate {"prompt":"say say say yes, on Friday"}`)+`}`))
	wantInThread(f, "discord:5", "yes, on Friday")
	got := f.Query(`SELECT folder FROM turns WHERE kind = 'delegated' ORDER BY id`)
	if slices.Sort(got); !slices.Equal(slices.Compact(got), []string{"main", "main/eng"}) {
		t.Errorf("delegated turns of %q", got)
	}
	for _, folder := range []string{"main", "main/eng"} {
		if n := len(f.Outbound("group:" + folder)); n != 0 {
			t.Errorf("%d answers in the internal chat of %s", n, folder)
		}
	}
}

// A delegated child asks its parent while it works for another one's chat.
func TestEscalateTool_InDelegatedTurn_AnswerReachesOriginThread(t *testing.T) {
	f := start(t, harness.Options{Agent: caller})
	prompt := `call escalate {"prompt":"say say yes, on Friday"}`
	f.Put(asked("telegram:-5", `call delegate {"folder":"main/eng","prompt":`+quoted(prompt)+`}`))
	wantInThread(f, "telegram:-5", "yes, on Friday")
}

// limitNotice begins the notice of a request that was passed on too often.
const limitNotice = "(My agents passed this request on"

// wantOneLimitNotice waits until the instance is idle, and fails the test unless the chat has got one notice.
func wantOneLimitNotice(f *harness.Fixture, chat string) {
	f.T.Helper()
	f.WaitIdle()
	got := f.Query(`SELECT chat_jid, thread_id FROM messages WHERE source = 'notice' AND instr(content, ?) > 0`, limitNotice)
	if !slices.Equal(got, []string{chat + " 77"}) {
		f.T.Errorf("notices in %q, want one in thread 77 of %s", got, chat)
	}
}

func TestDelegateTool_Storm_EndsWithOneNotice(t *testing.T) {
	f := start(t, harness.Options{Agent: caller})
	var calls []string
	for i := range 20 {
		calls = append(calls, fmt.Sprintf(`call delegate {"folder":"main/eng","prompt":"say job %d"}`, i))
	}
	row := f.Put(asked("telegram:-5", strings.Join(append(calls, "wait go"), "\n")))[0]
	f.WaitRunning(row)
	f.Kill(harness.Gated)
	f.Restart(harness.Gated)
	f.LetGo("main", "go")
	wantOneLimitNotice(f, "telegram:-5")
	for i := range 16 {
		wantInThread(f, "telegram:-5", fmt.Sprintf("job %d", i))
	}
	if n := f.TurnCount("telegram:-5"); n != 1+16 {
		t.Errorf("%d turns, want %d", n, 1+16)
	}
}

// Two groups pass a request on to each other for ever.
func TestDelegationTools_Loop_EndsWithOneNotice(t *testing.T) {
	need.Verify(t)
	f := start(t, harness.Options{Agent: caller})
	f.Put(asked("telegram:-5", "call delegate {\"folder\":\"main/eng\",\"prompt\":\"$text\"}\ncall escalate {\"prompt\":\"$text\"}"))
	wantOneLimitNotice(f, "telegram:-5")
	if got := f.Query(`SELECT max(depth), count(*) FROM turns WHERE kind = 'delegated'`); !slices.Equal(got, []string{"8 8"}) {
		t.Errorf("depth and number of delegated turns: %q", got)
	}
}

// An agent injects the same message into its own chat for ever.
func TestInjectTool_Loop_EndsWithOneNotice(t *testing.T) {
	f := start(t, harness.Options{Agent: caller})
	f.Put(asked("telegram:-5", `call inject_message {"chat_jid":"telegram:-5","topic":"77","content":"$text"}`))
	wantOneLimitNotice(f, "telegram:-5")
	if n := f.TurnCount("telegram:-5"); n != 1+8 {
		t.Errorf("%d turns, want %d", n, 1+8)
	}
}
