package scenarios

import (
	"strings"
	"testing"

	"arizuko/pkg/msg"
)

// edit is a change of a message's text.
func edit(chat, target, stamp, text string) msg.Message {
	return msg.Message{ChatJID: chat, Verb: msg.VerbEdit, PlatformID: target + ":e:" + stamp, TargetID: target, Content: text}
}

// deletion is a message's end.
func deletion(chat, target string) msg.Message {
	return msg.Message{ChatJID: chat, Verb: msg.VerbDelete, PlatformID: target + ":d", TargetID: target}
}

// holding is an instance whose Discord chats hold rows until there are two.
func holding(t *testing.T) *Suite {
	s := start(t, Options{})
	s.RouteWith("platform=discord", "main", map[string]any{"threshold": 200, "max_hold_ms": 3_600_000})
	return s
}

func TestAnEditBeforeDispatchReplacesTheText(t *testing.T) {
	s := holding(t)
	held := s.Put(msg.Message{ChatJID: "discord:5", PlatformID: "m1", Content: "tpyo"})[0]
	passed(s)
	s.Becomes(s.Put(edit("discord:5", "m1", "1", "typo"))[0], msg.Dropped, msg.ReasonEditApplied)
	if m := s.Row(held); m.Content != "typo" || m.Disposition != "" {
		t.Errorf("the held row is %+v", m)
	}
	s.Say("discord:5", "sorry")
	s.HasHeard("discord:5", "typo", "sorry")
}

func TestAMessageAndItsEditInOneGo(t *testing.T) {
	s := holding(t)
	s.Put(msg.Message{ChatJID: "discord:5", PlatformID: "m1", Content: "tpyo"}, edit("discord:5", "m1", "1", "typo"),
		msg.Message{ChatJID: "discord:5", Content: "sorry"})
	s.HasHeard("discord:5", "typo", "sorry")
}

func TestADeletionBeforeDispatchDropsTheMessage(t *testing.T) {
	s := holding(t)
	held := s.Put(msg.Message{ChatJID: "discord:5", PlatformID: "m1", Content: "never mind"})[0]
	passed(s)
	s.Becomes(s.Put(deletion("discord:5", "m1"))[0], msg.Dropped, msg.ReasonEditApplied)
	s.Becomes(held, msg.Dropped, msg.ReasonDeleted)
	s.Put(texts("discord:5", "one", "two")...)
	s.HasHeard("discord:5", "one", "two")
}

func TestAnEditAfterDispatchIsANoteInTheNextPrompt(t *testing.T) {
	s := start(t, Options{Agent: Recording})
	s.Answer(s.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "at nine"})[0])
	s.Answer(s.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m2", Content: "or not"})[0])
	notes := s.Put(edit("telegram:5", "m1", "1", "at ten"), deletion("telegram:5", "m2"))
	for _, id := range notes {
		s.Becomes(id, msg.Observed, msg.ReasonEditNote)
	}
	passed(s)
	if n := s.Count("telegram:5"); n != 2 {
		t.Fatalf("a change made a turn: %d", n)
	}
	next := s.Say("telegram:5", "ok?")
	s.HasHeard("telegram:5", "at nine", "or not", "at ten", "", "ok?")
	for _, id := range notes {
		if got, want := s.Row(id).TurnID, s.Turn(next).ID; got != want {
			t.Errorf("the note went with turn %d, not %d", got, want)
		}
	}
	if in := s.Input("main"); !strings.Contains(in, `verb=\"edit\"`) || !strings.Contains(in, `verb=\"delete\"`) {
		t.Errorf("the prompt does not tell changes from messages:\n%s", in)
	}
	s.Say("telegram:5", "and now?")
	s.HasHeard("telegram:5", "at nine", "or not", "at ten", "", "ok?", "and now?")
}

func TestOnlyTheNewestOfSeveralEditsIsShown(t *testing.T) {
	s := start(t, Options{})
	s.Answer(s.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "at nine"})[0])
	s.Decided(s.Put(edit("telegram:5", "m1", "1", "at ten"))[0])
	s.Decided(s.Put(edit("telegram:5", "m1", "2", "at eleven"))[0])
	s.Say("telegram:5", "ok?")
	s.HasHeard("telegram:5", "at nine", "at eleven", "ok?")
}

func TestAnEditDuringTheRunIsANoteToo(t *testing.T) {
	s := start(t, Options{})
	running := s.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "slow 2 at nine"})[0]
	s.Runs(running)
	s.Becomes(s.Put(edit("telegram:5", "m1", "1", "at ten"))[0], msg.Observed, msg.ReasonEditNote)
	s.Say("telegram:5", "ok?")
	s.HasHeard("telegram:5", "slow 2 at nine", "at ten", "ok?")
}

func TestAnEditOfAPrefixedMessageFollowsTheDerivedRow(t *testing.T) {
	s := start(t, Options{})
	row := s.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "@eng at nine"})[0]
	s.Becomes(row, msg.Prefix, msg.ReasonPrefixGroup)
	note := s.Becomes(s.Put(edit("telegram:5", "m1", "1", "@eng at ten"))[0], msg.Observed, msg.ReasonEditNote)
	if note.RoutedTo != "main/eng" {
		t.Errorf("the note is for %s", note.RoutedTo)
	}
}

func TestAnEditThatNewlyAddressesTheBotFiresOnce(t *testing.T) {
	s := listening(t, Options{})
	row := s.Put(msg.Message{ChatJID: "telegram:-5", PlatformID: "m1", Content: "somebody should look"})[0]
	s.Becomes(row, msg.Observed, msg.ReasonRouteObserve)
	addressed := func(stamp, text string) int64 {
		m := edit("telegram:-5", "m1", stamp, text)
		m.Addressed = true
		return s.Put(m)[0]
	}
	first := addressed("1", "bot, have a look")
	s.Becomes(first, msg.Routed, msg.ReasonEditAddressed)
	s.Answer(first)
	if turn := s.Turn(first); turn.ReplyTo != "m1" {
		t.Errorf("the answer replies to %q", turn.ReplyTo)
	}
	s.Becomes(addressed("2", "bot, have a look now"), msg.Observed, msg.ReasonEditNote)
	s.HasHeard("telegram:-5", "bot, have a look")
}

func TestAnEditThatDoesNotAddressTheBotFiresNothing(t *testing.T) {
	s := listening(t, Options{})
	row := s.Put(msg.Message{ChatJID: "telegram:-5", PlatformID: "m1", Content: "chatter"})[0]
	s.Becomes(row, msg.Observed, msg.ReasonRouteObserve)
	s.Becomes(s.Put(edit("telegram:-5", "m1", "1", "idle chatter"))[0], msg.Observed, msg.ReasonEditNote)
	s.HasHeard("telegram:-5")
}

func TestChangesOfWhatIsNotStoredOrOursAreDropped(t *testing.T) {
	s := start(t, Options{})
	for _, id := range s.Put(edit("telegram:5", "unknown", "1", "x"), deletion("telegram:5", "unknown"),
		msg.Message{ChatJID: "telegram:5", Verb: msg.VerbEdit, Content: "of nothing"}) {
		s.Becomes(id, msg.Dropped, msg.ReasonEditOrphan)
	}
	s.Answer(s.Say("telegram:5", "hello"))
	s.Exec(`UPDATE messages SET platform_id = 'o1' WHERE direction = 'out'`)
	s.Becomes(s.Put(edit("telegram:5", "o1", "1", "forged"))[0], msg.Dropped, msg.ReasonEditOrphan)
	s.HasHeard("telegram:5", "hello")
}

func TestARedeliveryChangesNothing(t *testing.T) {
	s := start(t, Options{})
	s.Answer(s.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "m1", Content: "once"})[0])
	s.Exec(`INSERT OR IGNORE INTO messages (chat_jid, platform_id, direction, content, timestamp, received_at)
		VALUES ('telegram:5', 'm1', 'in', 'twice', 0, 0)`)
	s.HasHeard("telegram:5", "once")
}
