package platforms

import (
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// Users edit and delete messages before the agent reads them, and after the answer.
func TestChanges_BeforeAndAfterTheAnswer_ReachTheAgent(t *testing.T) {
	onEachPlatform(t, func(f *fixture) {
		const hold = "IMPULSE_MAX_HOLD=1h" // a reaction waits for a message, however late that is
		f.Kill("gated")
		f.Kill("routd")
		f.Restart("routd", hold)
		typo, spoken := f.say(f.dm, "tpyo"), f.say(f.dm, "never mind")
		f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbEdit, Target: typo, Text: "typo"})
		f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbDelete, Target: spoken})
		f.say(f.dm, "sorry")
		f.waitStored("sorry")
		f.Restart("gated", hold)
		f.waitAnswer("sorry")
		f.WaitIdle()
		for text, want := range map[string]int{"tpyo": 0, "typo": 1, "never mind": map[bool]int{false: 1}[f.info.ReportsDeletions]} {
			if plain, marked := f.copies(text); plain != want || marked != 0 {
				f.T.Errorf("%q is answered %d times", text, plain+marked)
			}
		}

		at := f.say(f.dm, "at nine")
		f.waitAnswer("at nine")
		f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbEdit, Target: at, Text: "at ten"})
		f.Until("the edit to be noted", func() bool {
			return f.Value(`SELECT reason FROM messages WHERE verb = 'edit' AND content = 'at ten' AND target_id = ?`, at) == "edit_note"
		})
		f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbReaction, Target: at, Text: "👍"})
		f.Until("the reaction to be stored", func() bool {
			return f.Value(`SELECT content FROM messages WHERE verb = 'reaction' AND target_id = ?`, at) == "👍"
		})
		f.say(f.dm, "ok?")
		if a := f.waitAnswer("ok?"); !strings.Contains(a.Text, echo("at ten")) {
			f.T.Errorf("the agent did not get the edit: %q", a.Text)
		}
	})
}

// Each setting of BOTS gets the same two messages of a bot.
func TestBots_EachSetting_StoresWhatItNames(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		for _, tt := range []struct{ bots, plain, mention string }{{"none", "0", "0"}, {"mentions", "0", "1"}, {"all", "1", "1"}} {
			group := f.NewGroup("bots-" + tt.bots)
			f.Kill(f.info.Daemon)
			f.Restart(f.info.Daemon, "BOTS="+tt.bots)
			f.waitConnection("connected")
			plain, mention, user := tt.bots+": a bot writes", tt.bots+": a bot mentions", tt.bots+": a user writes"
			f.do(chatsim.Action{Conversation: group, Verb: msg.VerbMessage, Text: plain, Bot: true})
			f.do(chatsim.Action{Conversation: group, Verb: msg.VerbMention, Text: mention, Bot: true})
			f.ask(group, user)
			f.waitAnswer(user)
			if got := f.rowCount(plain); got != tt.plain {
				f.T.Errorf("with BOTS=%s %q is stored %s times", tt.bots, plain, got)
			}
			if got := f.rowCount(mention); got != tt.mention {
				f.T.Errorf("with BOTS=%s %q is stored %s times", tt.bots, mention, got)
			}
			if tt.mention == "1" {
				f.waitAnswer(mention)
			}
		}
	})
}
