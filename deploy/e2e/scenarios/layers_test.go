package scenarios

import (
	"strings"
	"testing"

	"arizuko/pkg/msg"
)

// hears sends a text and returns the turn that took it, or the row derived
// from it, after checking what the agent was told.
func (s *Suite) hears(chat, text, told string) *msg.Turn {
	s.t.Helper()
	id := s.Say(chat, text)
	if s.Decided(id).Disposition == msg.Prefix {
		derived, err := s.st.DerivedFrom(s.t.Context(), id)
		if err != nil || len(derived) != 1 {
			s.t.Fatalf("derived from %d: %v, %v", id, derived, err)
		}
		id = derived[0].ID
	}
	answer := s.Answer(id)
	if !strings.HasPrefix(answer, "You said: "+told+"\n(topic ") {
		s.t.Errorf("%q was answered %q", text, answer)
	}
	return s.Turn(id)
}

// isFor fails unless a turn is one of that folder and topic.
func isFor(t *testing.T, turn *msg.Turn, folder, topic string) {
	t.Helper()
	if turn.Folder != folder || turn.Topic != topic {
		t.Errorf("turn %d is for %s in topic %q, not %s in %q", turn.ID, turn.Folder, turn.Topic, folder, topic)
	}
}

func TestInlineTopic(t *testing.T) {
	s := start(t, Options{})
	id := s.Say("telegram:5", "#deploy ship it")
	m := s.Becomes(id, msg.Prefix, msg.ReasonPrefixTopic)
	if m.Content != "#deploy ship it" || m.Topic != "" {
		t.Errorf("the original is %+v", m)
	}
	s.HasHeard("telegram:5", "ship it")
	isFor(t, s.hears("telegram:5", "#deploy again", "again"), "main", "#deploy")
	isFor(t, s.hears("telegram:5", "elsewhere", "elsewhere"), "main", "")
}

func TestStickyTopic(t *testing.T) {
	s := start(t, Options{})
	pin := s.Say("telegram:5", "#deploy")
	s.Replies(pin, "topic → deploy")
	s.Becomes(pin, msg.Sticky, msg.ReasonStickyTopic)
	isFor(t, s.hears("telegram:5", "ship it", "ship it"), "main", "#deploy")
	isFor(t, s.hears("telegram:6", "in another chat", "in another chat"), "main", "")
	reset := s.Say("telegram:5", " # ")
	s.Replies(reset, "topic reset to default")
	s.Becomes(reset, msg.Sticky, msg.ReasonStickyReset)
	isFor(t, s.hears("telegram:5", "back", "back"), "main", "")
}

func TestStickyTopicBeatsInlineTopic(t *testing.T) {
	s := start(t, Options{})
	s.Replies(s.Say("telegram:5", "#deploy"), "topic → deploy")
	isFor(t, s.hears("telegram:5", "#fix this", "this"), "main", "#deploy")
}

func TestStickyTokensAndTextInOneGo(t *testing.T) {
	s := start(t, Options{})
	rows := s.Put(texts("telegram:5", "before", "#deploy", "inside", "#", "@eng", "to eng", "@", "after")...)
	s.Settle()
	isFor(t, s.Turn(rows[0]), "main", "")
	isFor(t, s.Turn(rows[2]), "main", "#deploy")
	isFor(t, s.Turn(rows[5]), "main/eng", "")
	isFor(t, s.Turn(rows[7]), "main", "")
}

func TestStickyGroup(t *testing.T) {
	s := start(t, Options{})
	pin := s.Say("telegram:5", "@eng")
	s.Replies(pin, "routing → eng")
	s.Becomes(pin, msg.Sticky, msg.ReasonStickyGroup)
	isFor(t, s.hears("telegram:5", "who are you?", "who are you?"), "main/eng", "")
	s.Replies(s.Say("telegram:5", "@main/eng/oncall"), "routing → main/eng/oncall")
	isFor(t, s.hears("telegram:5", "and you?", "and you?"), "main/eng/oncall", "")
	reset := s.Say("telegram:5", "@")
	s.Replies(reset, "routing reset to default")
	s.Becomes(reset, msg.Sticky, msg.ReasonStickyReset)
	isFor(t, s.hears("telegram:5", "back", "back"), "main", "")
}

func TestStickyGroupInAWebChat(t *testing.T) {
	s := start(t, Options{})
	s.Replies(s.Say("web:main", "@eng"), "routing → eng")
	isFor(t, s.hears("web:main", "who are you?", "who are you?"), "main/eng", "")
	s.Replies(s.Say("web:main", "@"), "routing reset to default")
	isFor(t, s.hears("web:main", "and now?", "and now?"), "main", "")
}

func TestStickyGroupTriggersWhereRoutesOnlyObserve(t *testing.T) {
	s := listening(t, Options{})
	s.Group("main/eng")
	s.Replies(s.Say("telegram:-5", "@eng"), "routing → eng")
	s.Becomes(s.Say("telegram:-5", "hello"), msg.Routed, msg.ReasonToSticky)
	s.HasHeard("telegram:-5", "hello")
}

func TestPrefixToAChild(t *testing.T) {
	s := start(t, Options{})
	isFor(t, s.hears("telegram:5", "@eng what broke?", "what broke?"), "main/eng", "")
	isFor(t, s.hears("telegram:5", "  @main/eng/oncall\nwake up", "wake up"), "main/eng/oncall", "")
	isFor(t, s.hears("telegram:5", "thanks", "thanks"), "main", "")
}

func TestPrefixTriggersWhereRoutesOnlyObserve(t *testing.T) {
	s := listening(t, Options{})
	isFor(t, s.hears("telegram:-5", "#deploy ship it", "ship it"), "main", "#deploy")
}

func TestNamesOutOfReachAndUnknownAreText(t *testing.T) {
	s := start(t, Options{})
	for _, text := range []string{"@other hello", "@nobody hello", "@other", "@nobody", "@bob's turn", "#1. first", "#!", "# 1"} {
		isFor(t, s.hears("telegram:5", text, text), "main", "")
	}
	from := s.Put(msg.Message{ChatJID: "telegram:5", Sender: operator, Content: "@other hello"})[0]
	s.Becomes(from, msg.Prefix, msg.ReasonPrefixGroup)
	from = s.Put(msg.Message{ChatJID: "telegram:6", Sender: operator, Content: "@other"})[0]
	s.Replies(from, "routing → other")
}

func TestTokensInAChatWithoutAHomeAreText(t *testing.T) {
	s := start(t, Options{})
	rows := s.Put(texts("discord:dm-5", "#deploy", "@main", "#deploy ship it", "/new")...)
	s.Replies(rows[3], "This chat is not connected to a group yet.")
	s.Route("platform=discord", "other")
	s.Becomes(rows[0], msg.Sticky, msg.ReasonStickyTopic)
	s.Becomes(rows[1], msg.Routed, msg.ReasonRoute)
	s.Becomes(rows[2], msg.Prefix, msg.ReasonPrefixTopic)
}

func TestPrefixedAndPlainRowsOfOneTurnKeepTheirOrder(t *testing.T) {
	s := start(t, Options{})
	s.Replies(s.Say("telegram:5", "@eng"), "routing → eng")
	s.Put(texts("telegram:5", "@main/eng one", "two", "@main/eng three")...)
	s.HasHeard("telegram:5", "one", "two", "three")
}

func TestAnswersFollowTheThreadNotTheTopic(t *testing.T) {
	s := start(t, Options{})
	s.Replies(s.Say("telegram:-5", "#deploy"), "topic → deploy")
	id := s.Put(msg.Message{ChatJID: "telegram:-5", ThreadID: "77", Topic: "77", Content: "in a thread"})[0]
	s.Answer(id)
	isFor(t, s.Turn(id), "main", "#deploy")
	out := s.Out("telegram:-5")
	if last := out[len(out)-1]; last.ThreadID != "77" || last.Topic != "77" {
		t.Errorf("answered in thread %q, place %q", last.ThreadID, last.Topic)
	}
}

func TestDifferentThreadsMakeDifferentTurns(t *testing.T) {
	s := start(t, Options{})
	row := func(thread, text string) msg.Message {
		return msg.Message{ChatJID: "telegram:-5", ThreadID: thread, Topic: thread, Content: text}
	}
	rows := s.Put(row("1", "a"), row("2", "b"), row("1", "c"), row("", "d"))
	s.Settle()
	if a, c := s.Turn(rows[0]), s.Turn(rows[2]); a.ID != c.ID || a.ThreadID != "1" || a.Topic != "1" {
		t.Errorf("the thread's rows went to turns %+v and %+v", a, c)
	}
	if s.Count("telegram:-5") != 3 {
		t.Errorf("%d turns", s.Count("telegram:-5"))
	}
}
