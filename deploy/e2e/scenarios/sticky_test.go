package scenarios

import (
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// wantEcho writes a text and returns its turn, or that of the row derived from it. It fails the test
// unless the agent has echoed that.
func wantEcho(f *harness.Fixture, chat, text, echo string) *msg.Turn {
	f.T.Helper()
	id := f.Say(chat, text)
	if f.WaitDecided(id).Disposition == msg.Prefix {
		derived, err := f.Store.DerivedFrom(f.T.Context(), id)
		if err != nil || len(derived) != 1 {
			f.T.Fatalf("derived from %d: %v, %v", id, derived, err)
		}
		id = derived[0].ID
	}
	answer := f.Answer(id)
	if !strings.HasPrefix(answer, "You said: "+echo+"\n(topic ") {
		f.T.Errorf("answer to %q: %q", text, answer)
	}
	return f.Turn(id)
}

// wantTurnOf fails the test unless a turn is of that folder and topic.
func wantTurnOf(t *testing.T, turn *msg.Turn, folder, topic string) {
	t.Helper()
	if turn.Folder != folder || turn.Topic != topic {
		t.Errorf("turn %d is of %s, topic %q, want %s, topic %q", turn.ID, turn.Folder, turn.Topic, folder, topic)
	}
}

func TestTopic_Sticky_AppliesUntilReset(t *testing.T) {
	f := start(t, harness.Options{})
	pin := f.Say("telegram:5", "#deploy")
	f.WantReply(pin, "topic → deploy")
	f.WantDecision(pin, msg.Sticky, msg.ReasonStickyTopic)
	wantTurnOf(t, wantEcho(f, "telegram:5", "ship it", "ship it"), "main", "#deploy")
	wantTurnOf(t, wantEcho(f, "telegram:6", "in another chat", "in another chat"), "main", "")
	reset := f.Say("telegram:5", " # ")
	f.WantReply(reset, "topic reset to default")
	f.WantDecision(reset, msg.Sticky, msg.ReasonStickyReset)
	wantTurnOf(t, wantEcho(f, "telegram:5", "back", "back"), "main", "")
}

func TestSticky_TokensAndTextInOneBatch_ApplyInOrder(t *testing.T) {
	f := start(t, harness.Options{})
	rows := f.Put(texts("telegram:5", "before", "#deploy", "inside", "#", "@eng", "to eng", "@", "after")...)
	f.WaitIdle()
	wantTurnOf(t, f.Turn(rows[0]), "main", "")
	wantTurnOf(t, f.Turn(rows[2]), "main", "#deploy")
	wantTurnOf(t, f.Turn(rows[5]), "main/eng", "")
	wantTurnOf(t, f.Turn(rows[7]), "main", "")
}

func TestStickyGroup_Names_ApplyUntilReset(t *testing.T) {
	f := start(t, harness.Options{})
	pin := f.Say("telegram:5", "@eng")
	f.WantReply(pin, "routing → eng")
	f.WantDecision(pin, msg.Sticky, msg.ReasonStickyGroup)
	wantTurnOf(t, wantEcho(f, "telegram:5", "who are you?", "who are you?"), "main/eng", "")
	f.WantReply(f.Say("telegram:5", "@main/eng/oncall"), "routing → main/eng/oncall")
	wantTurnOf(t, wantEcho(f, "telegram:5", "and you?", "and you?"), "main/eng/oncall", "")
	reset := f.Say("telegram:5", "@")
	f.WantReply(reset, "routing reset to default")
	f.WantDecision(reset, msg.Sticky, msg.ReasonStickyReset)
	wantTurnOf(t, wantEcho(f, "telegram:5", "back", "back"), "main", "")
}

func TestTokens_UnroutedChat_AreDecidedAfterRouting(t *testing.T) {
	f := start(t, harness.Options{})
	rows := f.Put(texts("discord:dm-5", "#deploy", "@main", "#deploy ship it", "/new")...)
	f.WantReply(rows[3], "This chat is not connected to a group yet.")
	f.AddRoute("platform=discord", "other")
	f.WantDecision(rows[0], msg.Sticky, msg.ReasonStickyTopic)
	f.WantDecision(rows[1], msg.Routed, msg.ReasonRoute)
	f.WantDecision(rows[2], msg.Prefix, msg.ReasonPrefixTopic)
}

func TestPrefix_ObservingRoute_StartsTurn(t *testing.T) {
	f := startOnMention(t, harness.Options{})
	wantTurnOf(t, wantEcho(f, "telegram:-5", "#deploy ship it", "ship it"), "main", "#deploy")
}
