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

// startHolding makes an instance in which Discord chats hold rows until there are two.
func startHolding(t *testing.T) *harness.Fixture {
	f := start(t, harness.Options{})
	f.AddRouteWithImpulse("platform=discord", "main", map[string]any{"threshold": 200, "max_hold_ms": 3_600_000})
	return f
}

func TestEdit_BeforeDispatch_ReplacesText(t *testing.T) {
	f := startHolding(t)
	held := f.Put(msg.Message{ChatJID: "discord:5", PlatformID: "m1", Content: "tpyo"})[0]
	waitScanned(f)
	f.WantDecision(f.Put(edit("discord:5", "m1", "1", "typo"))[0], msg.Dropped, msg.ReasonEditApplied)
	if m := f.Row(held); m.Content != "typo" || m.Disposition != "" {
		t.Errorf("held row: %+v", m)
	}
	f.Say("discord:5", "sorry")
	f.WantEchoes("discord:5", "typo", "sorry")
}

func TestEdit_InSameBatch_ReplacesText(t *testing.T) {
	f := startHolding(t)
	f.Put(msg.Message{ChatJID: "discord:5", PlatformID: "m1", Content: "tpyo"}, edit("discord:5", "m1", "1", "typo"),
		msg.Message{ChatJID: "discord:5", Content: "sorry"})
	f.WantEchoes("discord:5", "typo", "sorry")
}

func TestDeletion_BeforeDispatch_DropsMessage(t *testing.T) {
	f := startHolding(t)
	held := f.Put(msg.Message{ChatJID: "discord:5", PlatformID: "m1", Content: "never mind"})[0]
	waitScanned(f)
	f.WantDecision(f.Put(deletion("discord:5", "m1"))[0], msg.Dropped, msg.ReasonEditApplied)
	f.WantDecision(held, msg.Dropped, msg.ReasonDeleted)
	f.Put(texts("discord:5", "one", "two")...)
	f.WantEchoes("discord:5", "one", "two")
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

func TestEdit_Several_OnlyNewestIsPrompted(t *testing.T) {
	f := start(t, harness.Options{})
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "at nine"})[0])
	f.WaitDecided(f.Put(edit("telegram:5", "m1", "1", "at ten"))[0])
	f.WaitDecided(f.Put(edit("telegram:5", "m1", "2", "at eleven"))[0])
	f.Say("telegram:5", "ok?")
	f.WantEchoes("telegram:5", "at nine", "at eleven", "ok?")
}

func TestEdit_DuringRun_IsNoted(t *testing.T) {
	f := start(t, harness.Options{})
	running := f.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "until go at nine"})[0]
	f.WaitRunning(running)
	f.WantDecision(f.Put(edit("telegram:5", "m1", "1", "at ten"))[0], msg.Observed, msg.ReasonEditNote)
	f.Until("the agent to have the note", func() bool { return len(f.Query(`SELECT id FROM turns`)) == 2 })
	f.Say("telegram:5", "ok?")
	f.LetGo("main", "go")
	f.WantEchoes("telegram:5", "until go at nine", "at ten", "ok?")
}

func TestEdit_OfPrefixedMessage_FollowsDerivedRow(t *testing.T) {
	f := start(t, harness.Options{})
	row := f.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "@eng at nine"})[0]
	f.WantDecision(row, msg.Prefix, msg.ReasonPrefixGroup)
	f.WaitIdle() // an edit of a queued row changes the row
	note := f.WantDecision(f.Put(edit("telegram:5", "m1", "1", "@eng at ten"))[0], msg.Observed, msg.ReasonEditNote)
	if note.RoutedTo != "main/eng" {
		t.Errorf("the note is routed to %s", note.RoutedTo)
	}
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

func TestEdit_WithoutMention_StartsNoTurn(t *testing.T) {
	f := startOnMention(t, harness.Options{})
	row := f.Put(msg.Message{ChatJID: "telegram:-5", PlatformID: "m1", Content: "chatter"})[0]
	f.WantDecision(row, msg.Observed, msg.ReasonRouteObserve)
	f.WantDecision(f.Put(edit("telegram:-5", "m1", "1", "idle chatter"))[0], msg.Observed, msg.ReasonEditNote)
	f.WantEchoes("telegram:-5")
}

func TestEdit_OfUnknownOrOutboundMessage_IsDropped(t *testing.T) {
	f := start(t, harness.Options{})
	for _, id := range f.Put(edit("telegram:5", "unknown", "1", "x"), deletion("telegram:5", "unknown"),
		msg.Message{ChatJID: "telegram:5", Verb: msg.VerbEdit, Content: "of nothing"}) {
		f.WantDecision(id, msg.Dropped, msg.ReasonEditOrphan)
	}
	f.Answer(f.Say("telegram:5", "hello"))
	f.Exec(`UPDATE messages SET platform_id = 'o1' WHERE direction = 'out'`)
	f.WantDecision(f.Put(edit("telegram:5", "o1", "1", "forged"))[0], msg.Dropped, msg.ReasonEditOrphan)
	f.WantEchoes("telegram:5", "hello")
}

func TestRedelivery_SamePlatformID_IsIgnored(t *testing.T) {
	f := start(t, harness.Options{})
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "once"})[0])
	f.Exec(`INSERT INTO messages (chat_jid, platform_id, direction, content, timestamp, received_at)
		VALUES ('telegram:5', 'm1', 'in', 'twice', 0, 0) ON CONFLICT DO NOTHING`)
	f.WantEchoes("telegram:5", "once")
}
