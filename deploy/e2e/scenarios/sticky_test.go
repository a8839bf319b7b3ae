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

func TestTopic_Inline_AppliesToOneMessage(t *testing.T) {
	f := start(t, harness.Options{})
	id := f.Say("telegram:5", "#deploy ship it")
	m := f.WantDecision(id, msg.Prefix, msg.ReasonPrefixTopic)
	if m.Content != "#deploy ship it" || m.Topic != "" {
		t.Errorf("original row: %+v", m)
	}
	f.WantEchoes("telegram:5", "ship it")
	wantTurnOf(t, wantEcho(f, "telegram:5", "#deploy again", "again"), "main", "#deploy")
	wantTurnOf(t, wantEcho(f, "telegram:5", "elsewhere", "elsewhere"), "main", "")
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

func TestTopic_StickyAndInline_StickyWins(t *testing.T) {
	f := start(t, harness.Options{})
	f.WantReply(f.Say("telegram:5", "#deploy"), "topic → deploy")
	wantTurnOf(t, wantEcho(f, "telegram:5", "#fix this", "this"), "main", "#deploy")
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

func TestStickyGroup_WebChat_AppliesUntilReset(t *testing.T) {
	f := start(t, harness.Options{})
	f.WantReply(f.Say("web:main", "@eng"), "routing → eng")
	wantTurnOf(t, wantEcho(f, "web:main", "who are you?", "who are you?"), "main/eng", "")
	f.WantReply(f.Say("web:main", "@"), "routing reset to default")
	wantTurnOf(t, wantEcho(f, "web:main", "and now?", "and now?"), "main", "")
}

func TestStickyGroup_ObservingRoute_StartsTurn(t *testing.T) {
	f := startOnMention(t, harness.Options{})
	f.AddGroups("main/eng")
	f.WantReply(f.Say("telegram:-5", "@eng"), "routing → eng")
	f.WantDecision(f.Say("telegram:-5", "hello"), msg.Routed, msg.ReasonToSticky)
	f.WantEchoes("telegram:-5", "hello")
}

func TestPrefix_ChildGroup_GetsMessage(t *testing.T) {
	f := start(t, harness.Options{})
	wantTurnOf(t, wantEcho(f, "telegram:5", "@eng what broke?", "what broke?"), "main/eng", "")
	wantTurnOf(t, wantEcho(f, "telegram:5", "  @main/eng/oncall\nwake up", "wake up"), "main/eng/oncall", "")
	wantTurnOf(t, wantEcho(f, "telegram:5", "thanks", "thanks"), "main", "")
}

func TestPrefix_ObservingRoute_StartsTurn(t *testing.T) {
	f := startOnMention(t, harness.Options{})
	wantTurnOf(t, wantEcho(f, "telegram:-5", "#deploy ship it", "ship it"), "main", "#deploy")
}

func TestPrefix_UnknownOrForbiddenName_IsText(t *testing.T) {
	f := start(t, harness.Options{})
	for _, text := range []string{"@other hello", "@unknown hello", "@other", "@unknown", "@bob's turn", "#1. first", "#!", "# 1"} {
		wantTurnOf(t, wantEcho(f, "telegram:5", text, text), "main", "")
	}
	from := f.Put(msg.Message{ChatJID: "telegram:5", Sender: operator, Content: "@other hello"})[0]
	f.WantDecision(from, msg.Prefix, msg.ReasonPrefixGroup)
	from = f.Put(msg.Message{ChatJID: "telegram:6", Sender: operator, Content: "@other"})[0]
	f.WantReply(from, "routing → other")
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

func TestPrefix_MixedWithPlainRows_KeepsOrder(t *testing.T) {
	f := start(t, harness.Options{})
	f.WantReply(f.Say("telegram:5", "@eng"), "routing → eng")
	f.Put(texts("telegram:5", "@main/eng one", "two", "@main/eng three")...)
	f.WantEchoes("telegram:5", "one", "two", "three")
}

func TestAnswer_StickyTopicInThread_GoesToThread(t *testing.T) {
	f := start(t, harness.Options{})
	f.WantReply(f.Say("telegram:-5", "#deploy"), "topic → deploy")
	id := f.Put(msg.Message{ChatJID: "telegram:-5", ThreadID: "77", Topic: "77", Content: "in a thread"})[0]
	f.Answer(id)
	wantTurnOf(t, f.Turn(id), "main", "#deploy")
	out := f.Outbound("telegram:-5")
	if last := out[len(out)-1]; last.ThreadID != "77" || last.Topic != "77" {
		t.Errorf("the answer is in thread %q, place %q", last.ThreadID, last.Topic)
	}
}

func TestThreads_InOneBatch_MakeSeparateTurns(t *testing.T) {
	f := start(t, harness.Options{})
	row := func(thread, text string) msg.Message {
		return msg.Message{ChatJID: "telegram:-5", ThreadID: thread, Topic: thread, Content: text}
	}
	rows := f.Put(row("1", "a"), row("2", "b"), row("1", "c"), row("", "d"))
	f.WaitIdle()
	if a, c := f.Turn(rows[0]), f.Turn(rows[2]); a.ID != c.ID || a.ThreadID != "1" || a.Topic != "1" {
		t.Errorf("turns of the rows of one thread: %+v and %+v", a, c)
	}
	if f.TurnCount("telegram:-5") != 3 {
		t.Errorf("%d turns", f.TurnCount("telegram:-5"))
	}
}
