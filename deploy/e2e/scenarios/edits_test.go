package scenarios

import (
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// edit is the edit of a message. stamp tells edits of one message apart.
func edit(chat, target, stamp, text string) msg.Message {
	return msg.Message{ChatJID: chat, Verb: msg.VerbEdit, PlatformID: target + ":e:" + stamp, TargetID: target, Content: text}
}

// deletion is the deletion of a message.
func deletion(chat, target string) msg.Message {
	return msg.Message{ChatJID: chat, Verb: msg.VerbDelete, PlatformID: target + ":d", TargetID: target}
}

func TestEdit_AfterDispatch_IsNotedInNextPrompt(t *testing.T) {
	f := start(t, harness.Options{Agent: harness.RecordingAgent})
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "at nine"})[0])
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m2", Content: "or not"})[0])
	notes := f.Put(edit("telegram:5", "m1", "1", "at ten"), deletion("telegram:5", "m2"))
	for _, id := range notes {
		f.WantDecision(id, msg.Observed, msg.ReasonEditNote)
	}
	waitScanned(f)
	if n := f.TurnCount("telegram:5"); n != 2 {
		t.Fatalf("%d turns, want 2: an edit started one", n)
	}
	next := f.Say("telegram:5", "ok?")
	f.WantEchoes("telegram:5", "at nine", "or not", "at ten", "", "ok?")
	for _, id := range notes {
		if got, want := f.Row(id).TurnID, f.Turn(next).ID; got != want {
			t.Errorf("the note is in turn %d, want %d", got, want)
		}
	}
	if in := f.AgentInput("main"); !strings.Contains(in, `verb=\"edit\"`) || !strings.Contains(in, `verb=\"delete\"`) {
		t.Errorf("the prompt does not mark edits and deletions:\n%s", in)
	}
	f.Say("telegram:5", "and now?")
	f.WantEchoes("telegram:5", "at nine", "or not", "at ten", "", "ok?", "and now?")
}

func TestEdit_AddsMention_StartsOneTurn(t *testing.T) {
	f := startOnMention(t, harness.Options{})
	row := f.Put(msg.Message{ChatJID: "telegram:-5", PlatformID: "m1", Content: "this needs a look"})[0]
	f.WantDecision(row, msg.Observed, msg.ReasonRouteObserve)
	addressed := func(stamp, text string) int64 {
		m := edit("telegram:-5", "m1", stamp, text)
		m.Addressed = true
		return f.Put(m)[0]
	}
	first := addressed("1", "bot, have a look")
	f.WantDecision(first, msg.Routed, msg.ReasonEditAddressed)
	f.Answer(first)
	if turn := f.Turn(first); turn.ReplyTo != "m1" {
		t.Errorf("the answer replies to %q, want m1", turn.ReplyTo)
	}
	f.WantDecision(addressed("2", "bot, have a look now"), msg.Observed, msg.ReasonEditNote)
	f.WantEchoes("telegram:-5", "bot, have a look")
}
