package platforms

import (
	"fmt"
	"slices"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// markWaiting starts gated again with marks for messages that wait, and with one agent at a time.
func (f *fixture) markWaiting() {
	f.T.Helper()
	f.Kill("gated")
	f.StartDaemon("gated", "WAIT_MARK=500ms", "MAX_AGENTS=1")
}

// waits makes an agent work in a chat, and another message wait there for its own agent.
func (f *fixture) waits(in chatsim.Conversation, work string) (message string) {
	f.T.Helper()
	f.ask(in, work)
	f.waitRunning(in)
	message = f.ask(in, "#other second")
	f.Until("the second message to wait", func() bool {
		return f.Value(`SELECT count(*) FROM turns WHERE state = 'queued' AND topic LIKE '%#other'`) == "1"
	})
	return message
}

func (f *fixture) isMarked(in chatsim.Conversation, message string) bool {
	return slices.ContainsFunc(f.BotReactions(in, message), func(name string) bool { return name == "👀" || name == "eyes" })
}

func (f *fixture) waitMarked(in chatsim.Conversation, message string, want bool) {
	f.T.Helper()
	what := map[bool]string{true: "the mark", false: "no mark"}
	f.Until(what[want], func() bool { return f.isMarked(in, message) == want })
}

// marks lists the rows that set and remove marks, with their states.
func (f *fixture) marks() []string {
	f.T.Helper()
	return f.Query(`SELECT content || ' ' || out_state FROM messages WHERE source = ? ORDER BY id`, msg.SourceWaiting)
}

// wantUnmarked waits until the second message is answered, once, and has no mark. No notice tells the chat about marks.
func (f *fixture) wantUnmarked(in chatsim.Conversation, message string, marks ...string) {
	f.T.Helper()
	f.waitAnswer("second")
	f.waitMarked(in, message, false)
	f.WaitIdle()
	if got := f.marks(); !slices.Equal(got, marks) {
		f.T.Errorf("rows of marks: %q, want %q", got, marks)
	}
	if plain, marked := f.copies("second"); plain != 1 || marked != 0 {
		f.T.Errorf("%d answers and %d marked ones", plain, marked)
	}
	if notices := f.Query(`SELECT content FROM messages WHERE direction = 'out' AND source = ?`, msg.SourceNotice); len(notices) != 0 {
		f.T.Errorf("notices: %q", notices)
	}
}

func TestWaitMark_MessageWaits_MarkedUntilItsAgentBegins(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		f.markWaiting()
		for n, in := range []chatsim.Conversation{f.dm, f.NewThread("Topic")} {
			marked := fmt.Sprint("marked", n)
			message := f.waits(in, "until "+marked+" first")
			f.waitMarked(in, message, true)
			f.LetGo("main", marked)
			f.Until("the agent to begin", func() bool {
				return f.Value(`SELECT count(*) FROM turns WHERE state = 'queued'`) == "0"
			})
			f.WaitIdle()
			f.waitMarked(in, message, false)
		}
		if got, want := f.marks(), []string{"👀 sent", "-👀 sent", "👀 sent", "-👀 sent"}; !slices.Equal(got, want) {
			t.Errorf("rows of marks: %q, want %q", got, want)
		}
	})
}

// The adapter is killed when the platform has the mark, before that is stored, and is away while the agent begins.
func TestWaitMark_AdapterKilled_MarkIsRemovedAllTheSame(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		f.markWaiting()
		f.Kill(f.info.Daemon)
		f.Until("the connection to end", func() bool { return !f.Connected() })
		f.StartDaemon(f.info.Daemon, "FAILPOINT="+string(fp.Sent))
		f.Until("the connection", f.Connected)
		message := f.waits(f.dm, "until go first")
		f.waitKilled(f.info.Daemon)
		if !f.isMarked(f.dm, message) {
			t.Error("the message is not marked")
		}
		f.Restart(f.info.Daemon)
		f.Until("the mark to be stored", func() bool { return slices.Equal(f.marks(), []string{"👀 sent"}) })
		f.Kill(f.info.Daemon)
		f.LetGo("main", "go")
		f.Until("the second agent to begin", func() bool { return len(f.marks()) == 2 })
		if !f.isMarked(f.dm, message) {
			t.Error("the mark was removed while no adapter ran")
		}
		f.Restart(f.info.Daemon)
		f.wantUnmarked(f.dm, message, "👀 sent", "-👀 sent")
	})
}

// The chat takes no such reaction: the message waits without a mark, and none is removed.
func TestWaitMark_ReactionForbidden_AnswerComes(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		f.markWaiting()
		in := f.NewGroup("Team")
		f.ForbidReactions(in)
		message := f.waits(in, "until go first")
		f.Until("the mark to be refused", func() bool { return slices.Equal(f.marks(), []string{"👀 failed"}) })
		f.LetGo("main", "go")
		f.wantUnmarked(in, message, "👀 failed")
	})
}
