package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/need"
)

// What users say while the real Claude Code works. The fake model answers the last message that it gets.

// wantFolded fails the test unless the next frame answers these turns with that text.
func (s *session) wantFolded(text string, turns ...string) {
	s.t.Helper()
	if f := s.Next(); f.Status != agentproto.StatusOK || !slices.Equal(f.TurnIDs, turns) || f.Result != text {
		s.t.Errorf("got %+v, want turns %q answered %q", f, turns, text)
	}
}

func TestAgent_MessageDuringToolCall_IsFolded(t *testing.T) {
	t.Parallel()
	s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *),Bash(echo *)")
	s.begin("tool Bash sleep 6; echo done")
	s.Send(agenttest.Foldable("2", "say two"), agenttest.Foldable("3", "say three"))
	s.wantFolded("The tool said: done", "1", "2", "3")
	var taken []string
	for _, e := range s.Events {
		if e.Status == agentproto.StatusRunning {
			taken = append(taken, e.TurnID)
		}
	}
	if !slices.Equal(taken, []string{"2", "3"}) {
		t.Errorf("it said that it had taken in turns %q", taken)
	}
	calls := s.model.MessageCalls()
	last := calls[len(calls)-1].Request
	var all strings.Builder
	for _, m := range last.Messages {
		all.WriteString(m.Content.Text())
	}
	for _, text := range []string{"say two", "say three"} {
		if !strings.Contains(all.String(), text) {
			t.Errorf("the call after the tool has no %q", text)
		}
	}
	s.Send(agenttest.Further("4", "say four"))
	s.WantAnswer("4", "four")
	s.WantExit(0)
}

// Without a call of a tool there is nothing to fold into: Claude Code begins what has come meanwhile as one turn.
func TestAgent_MessagesDuringText_AreTheNextTurn(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	s := newFixture(t).open()
	s.begin("slow 2 say one")
	s.Send(agenttest.Foldable("2", "say two"), agenttest.Foldable("3", "say three"))
	s.WantAnswer("1", "one")
	s.wantFolded("three", "2", "3")
	s.WantExit(0)
}

func TestAgent_InterruptWithGivenTurns_DropsThem(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	s := newFixture(t).open()
	s.begin("slow 600 say never")
	s.Send(agenttest.Foldable("2", "say nor this"), agenttest.Foldable("3", "say nor that"), agentproto.Interrupt{}, agenttest.Further("4", "say after"))
	s.WantAnswer("4", "after")
	s.WantExit(0)
	if n := len(s.model.MessageCalls()); n != 2 {
		t.Errorf("%d calls of the model, want 2", n)
	}
}

// Turns that a Claude Code had before its time when it was killed are not lost: the run ends, and gated asks them again.
func TestAgent_CLIKilledWithGivenTurns_FailsTheTurnUnderWay(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *)")
	s.begin("tool Bash sleep 600")
	s.Send(agenttest.Foldable("2", "say two"))
	kill(t, s.cliPID(), syscall.SIGKILL)
	s.WantError("1", agentproto.KindTransient, "signal: killed")
	s.WantExit(1)
}

// A turn that Claude Code has and does not take in is not given to it again.
func TestAgent_GivenTurn_IsAskedOnce(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	s := newFixture(t).open()
	s.begin("slow 1 say one")
	s.Send(agenttest.Foldable("2", "slow 1 say two"))
	s.WantAnswer("1", "one")
	s.waitCall("slow 1 say two")
	s.Send(agenttest.Foldable("3", "say three"))
	s.WantAnswer("2", "two")
	s.WantAnswer("3", "three")
	s.WantExit(0)
	asked := 0
	for _, c := range s.model.MessageCalls() {
		if c.Command == "slow 1 say two" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("the model was asked %d times", asked)
	}
}
