package scenarios

import (
	"testing"

	"arizuko/pkg/msg"
)

func TestTopicsOfAWebChatRunInParallel(t *testing.T) {
	s := start(t, Options{})
	row := func(topic, text string) int64 {
		return s.Put(msg.Message{ChatJID: "web:main", Topic: topic, Content: text})[0]
	}
	slow := row("#a", "slow 600 a")
	s.Runs(slow)
	quick := row("#b", "b")
	s.Answer(quick)
	behind := row("#a", "behind")
	s.Decided(behind)
	if state := s.Turn(slow).State; state != msg.TurnRunning {
		t.Errorf("#a is %s", state)
	}
	if out := s.Out("web:main"); len(out) != 1 || out[0].Topic != "#b" {
		t.Errorf("answers: %+v", out)
	}
	s.Replies(row("#a", "/stop"), "stopped")
}

func TestOneSessionInTwoChatsIsServedOneAfterAnother(t *testing.T) {
	s := start(t, Options{})
	first := s.Say("telegram:5", "slow 1 one")
	s.Runs(first)
	s.Say("web:main", "slow 1 two")
	s.Say("telegram:5", "three")
	s.Say("web:main", "four")
	s.HasHeard("telegram:5", "slow 1 one", "three")
	s.HasHeard("web:main", "slow 1 two", "four")
	if sessions := s.lines(`SELECT DISTINCT session_id FROM session_log WHERE folder = 'main' AND session_id <> ''`); len(sessions) != 1 {
		t.Errorf("sessions: %q", sessions)
	}
}

func TestAChatOfAnUnregisteredGroupIsDropped(t *testing.T) {
	s := start(t, Options{})
	for _, chat := range []string{"web:nope", "group:nope", "web:../main"} {
		s.Becomes(s.Say(chat, "hello"), msg.Dropped, msg.ReasonNoGroup)
	}
	s.Becomes(s.Say("web:", "hello"), msg.Dropped, msg.ReasonBadRow)
}
