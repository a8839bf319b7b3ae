package platforms

import (
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/groupconfig"
)

// The answers to the deliveries of a hook arrive where it says, and a user asks about one there.
func TestHooks_To_AnswersArriveInThread(t *testing.T) {
	onEachPlatform(t, func(f *fixture) {
		thread := f.NewThread("ci")
		f.ask(thread, "hello")
		f.wantAnswer("hello", thread, f.info.Thread)
		f.Restart("dashd")
		h := f.AddHook("main", groupconfig.HookGitHub, "--to", thread.Chat, "--config", `{"thread":"`+thread.Thread+`"}`)
		for id, text := range map[string]string{"1": "the build is slow", "2": "the build is red"} {
			_, err := h.Deliver("issues", id, harness.Issue(1, text, ""))
			f.OK(err)
			if a := f.waitArrival(text); a.Chat != thread.Chat || a.Thread != thread.Thread || a.ReplyTo != "" {
				f.T.Errorf("%q arrived as %+v, want %+v", text, a, thread)
			}
		}
		f.say(thread, "why?")
		f.wantAnswer("why?", thread, f.info.Thread)
	})
}
