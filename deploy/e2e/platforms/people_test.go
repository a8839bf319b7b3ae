package platforms

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

func TestFilesComeIn(t *testing.T) {
	each(t, func(f *front) {
		f.do(chatsim.Action{
			Conversation: f.dm, Verb: msg.VerbMessage, Text: "look at this", File: &chatsim.File{Name: "../plan.txt", Data: []byte("one, two")},
		})
		f.answer("look at this")
		path := f.value(`SELECT attachments ->> '$[0].path' FROM messages WHERE content = 'look at this'`)
		data, err := os.ReadFile(filepath.Join(f.Data, path))
		if err != nil || string(data) != "one, two" || !strings.HasPrefix(path, "media/") {
			f.t.Errorf("the file is at %q: %q, %v", path, data, err)
		}
	})
}

func TestFilesGoOut(t *testing.T) {
	each(t, func(f *front) {
		thread := f.NewThread("deploys")
		f.call(thread, "make a plan")
		f.answer("make a plan")
		f.ok(os.WriteFile(filepath.Join(f.Data, "groups", "main", "plan.txt"), []byte("one, two"), 0o600))
		f.put(msg.Message{
			ChatJID: thread.Chat, ThreadID: thread.Thread, Kind: msg.KindFile, Content: "this is the plan",
			Attachments: []msg.Attachment{{Path: "groups/main/plan.txt", Name: "plan.txt", MIME: "text/plain", Size: 8}},
		})
		a := f.arrived("this is the plan")
		want := []chatsim.File{{Name: "plan.txt", Data: []byte("one, two")}}
		same := func(a, b chatsim.File) bool { return a.Name == b.Name && string(a.Data) == string(b.Data) }
		if !slices.EqualFunc(a.Files, want, same) || a.Chat != thread.Chat || a.Thread != thread.Thread {
			f.t.Errorf("arrived in %s %q: %q", a.Chat, a.Thread, a.Files)
		}
	})
}

// TestPeopleChangeWhatTheyHaveSaid does so before it was read, and behind the answer.
func TestPeopleChangeWhatTheyHaveSaid(t *testing.T) {
	each(t, func(f *front) {
		f.down("gated")
		typo, spoken := f.say(f.dm, "tpyo"), f.say(f.dm, "never mind")
		f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbEdit, Target: typo, Text: "typo"})
		f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbDelete, Target: spoken})
		f.say(f.dm, "sorry")
		f.stored("sorry")
		f.up("gated")
		f.answer("sorry")
		f.settle()
		for text, want := range map[string]int{"tpyo": 0, "typo": 1, "never mind": map[bool]int{false: 1}[f.about.ReportsDeletions]} {
			if plain, marked := f.copies(text); plain != want || marked != 0 {
				f.t.Errorf("%q is answered %d times", text, plain+marked)
			}
		}

		at := f.say(f.dm, "at nine")
		f.answer("at nine")
		f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbEdit, Target: at, Text: "at ten"})
		f.until("the change is noted", func() bool {
			return f.value(`SELECT reason FROM messages WHERE verb = 'edit' AND content = 'at ten' AND target_id = ?`, at) == "edit_note"
		})
		f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbReaction, Target: at, Text: "👍"})
		f.until("the reaction is stored", func() bool {
			return f.value(`SELECT content FROM messages WHERE verb = 'reaction' AND target_id = ?`, at) == "👍"
		})
		f.say(f.dm, "ok?")
		if a := f.answer("ok?"); !strings.Contains(a.Text, echo("at ten")) {
			f.t.Errorf("the agent was not told of the change: %q", a.Text)
		}
	})
}

// TestOtherBots has each setting of BOTS hear the same two messages of a bot.
func TestOtherBots(t *testing.T) {
	each(t, func(f *front) {
		for _, tt := range []struct{ bots, plain, called string }{{"none", "0", "0"}, {"mentions", "0", "1"}, {"all", "1", "1"}} {
			group := f.NewGroup("bots-" + tt.bots)
			f.down(f.about.Daemon)
			f.up(f.about.Daemon, "BOTS="+tt.bots)
			f.connection("connected")
			plain, called, person := tt.bots+": a bot speaks", tt.bots+": a bot calls", tt.bots+": a person speaks"
			f.do(chatsim.Action{Conversation: group, Verb: msg.VerbMessage, Text: plain, Bot: true})
			f.do(chatsim.Action{Conversation: group, Verb: msg.VerbMention, Text: called, Bot: true})
			f.call(group, person)
			f.answer(person)
			if got := f.rows(plain); got != tt.plain {
				f.t.Errorf("with BOTS=%s %q is stored %s times", tt.bots, plain, got)
			}
			if got := f.rows(called); got != tt.called {
				f.t.Errorf("with BOTS=%s %q is stored %s times", tt.bots, called, got)
			}
			if tt.called == "1" {
				f.answer(called)
			}
		}
	})
}
