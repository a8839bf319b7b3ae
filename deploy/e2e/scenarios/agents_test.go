package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/pkg/msg"
)

// oneByOne sends messages of which each waits for the answer to the one before.
func oneByOne(s *Suite, chat string, n int) (sent []string) {
	s.t.Helper()
	for i := range n {
		sent = append(sent, fmt.Sprintf("message %d", i))
		s.Answer(s.Say(chat, sent[i]))
	}
	return sent
}

// untried fails if a turn lost an attempt.
func untried(s *Suite) {
	s.t.Helper()
	for _, line := range s.lines(`SELECT id, attempts, error FROM turns WHERE attempts > 0`) {
		s.t.Errorf("turn %s", line)
	}
}

func TestAgentsThatLiveForOneAnswer(t *testing.T) {
	s := start(t, Options{Agent: "head -n 1 | exec %demo"})
	s.HasHeard("telegram:5", oneByOne(s, "telegram:5", 15)...)
	var sent []string
	for i := range 15 {
		sent = append(sent, fmt.Sprintf("at once %d", i))
		s.Say("telegram:6", sent[i])
	}
	s.HasHeard("telegram:6", sent...)
	untried(s)
}

func TestAgentsThatAreNotKeptWarm(t *testing.T) {
	s := start(t, Options{Env: []string{"AGENT_IDLE=0s"}})
	s.HasHeard("telegram:5", oneByOne(s, "telegram:5", 15)...)
	untried(s)
}

func TestOnePlaceForEverybody(t *testing.T) {
	s := start(t, Options{Env: []string{"MAX_AGENTS=1"}})
	sent := map[string][]string{}
	for i := range 8 {
		for _, chat := range []string{"telegram:5", "telegram:6", "web:main", "web:main/eng", "web:other", "group:other"} {
			text := fmt.Sprintf("%d to %s", i, chat)
			s.Put(msg.Message{ChatJID: chat, Content: text})
			sent[chat] = append(sent[chat], text)
		}
	}
	for chat, texts := range sent {
		s.HasHeard(chat, texts...)
	}
	untried(s)
}

func TestAnAgentThatFailsIsTriedAgain(t *testing.T) {
	s := start(t, Options{Agent: `if mkdir failed; then exit 3; fi; exec %demo`})
	first := s.Say("telegram:5", "one")
	s.Until("the first try has failed", func() bool { return s.Turn(first).Attempts == 1 })
	s.Say("telegram:5", "two") // waits behind it
	s.Answer(s.Say("telegram:6", "three"))
	if turn := s.Turn(first); turn.EndedAt != 0 {
		t.Errorf("the failed turn did not wait: %+v", turn)
	}
	s.HasHeard("telegram:5", "one", "two")
	if turn := s.Turn(first); turn.Attempts != 1 || turn.State != msg.TurnDone {
		t.Errorf("the turn is %+v", turn)
	}
}

func TestAnAgentThatKeepsFailingIsGivenUp(t *testing.T) {
	s := start(t, Options{Env: []string{"TURN_ATTEMPTS=1"}})
	for _, order := range []string{"crash", "error"} {
		id := s.Say("telegram:5", order)
		if turn := s.Ended(id); turn.State != msg.TurnFailed || turn.Reason != msg.ReasonAgentError || turn.Error == "" {
			t.Errorf("the turn of %q is %+v", order, turn)
		}
		if notice := s.Answer(id); !strings.Contains(notice, "could not answer") {
			t.Errorf("the chat was told %q", notice)
		}
	}
	s.Say("telegram:5", "hello")
	s.HasHeard("telegram:5", "hello")
}

func TestAnAgentThatCannotBeStarted(t *testing.T) {
	s := start(t, Options{Agent: "exec /nowhere/agent", Env: []string{"TURN_ATTEMPTS=1"}})
	row := s.Say("telegram:5", "hello")
	if turn := s.Ended(row); turn.State != msg.TurnFailed || !strings.Contains(turn.Error, "/nowhere/agent") {
		t.Errorf("the turn is %+v", turn)
	}
	s.Replies(s.Say("telegram:5", "/ping"), "pong")
}

func TestSeveralFramesAndSilence(t *testing.T) {
	s := start(t, Options{})
	frames := s.Say("telegram:5", "frames 3 long story")
	if n := strings.Count(s.Answer(frames), "You said: "); n != 3 {
		t.Errorf("%d frames", n)
	}
	silent := s.Say("telegram:5", "silent please")
	if turn := s.Ended(silent); turn.Reason != msg.ReasonSilent || s.Answer(silent) != "" {
		t.Errorf("the silent turn is %+v", turn)
	}
	s.Say("telegram:5", "hello")
	s.Settle()
}
