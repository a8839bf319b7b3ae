package main

import (
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/need"
)

// Messages that come while the real Claude Code works. The fake model answers the last message that it gets.

func TestAgent_MessageDuringToolCall_IsFolded(t *testing.T) {
	t.Parallel()
	s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *),Bash(echo *)")
	s.begin("tool Bash sleep 6; echo done")
	s.Send(agenttest.Foldable("2", "say two"), agenttest.Foldable("3", "say three"))
	if f := s.Next(); !slices.Equal(f.TurnIDs, []string{"1", "2", "3"}) || f.Result != "The tool said: done" {
		t.Errorf("got %+v", f)
	}
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

// Messages that come while Claude Code works are answered in order, together where they may be folded, and not at all
// after an interrupt. Without a call of a tool there is nothing to fold into: it begins them as one turn. Those that
// may not be folded it gets one by one; Claude Code itself would answer both with one result.
func TestAgent_MessagesDuringTurn(t *testing.T) {
	t.Parallel()
	type answer struct {
		text  string
		turns []string
	}
	one, two, three := answer{"one", []string{"1"}}, answer{"two", []string{"2"}}, answer{"three", []string{"3"}}
	for name, tt := range map[string]struct {
		begin  string
		sent   []agentproto.Input
		want   []answer
		calls  int  // of the model
		always bool // also without VERIFY
	}{
		"in order": {
			"slow 1 say one", []agentproto.Input{agenttest.Further("2", "say two"), agenttest.Further("3", "say three")},
			[]answer{one, two, three}, 3, true,
		},
		"not to be folded": {
			"tool Bash sleep 1; echo done", []agentproto.Input{agenttest.Further("2", "say two")},
			[]answer{{"The tool said: done", []string{"1"}}, two}, 3, false,
		},
		"during a text": {
			"slow 2 say one", []agentproto.Input{agenttest.Foldable("2", "say two"), agenttest.Foldable("3", "say three")},
			[]answer{one, {"three", []string{"2", "3"}}}, 2, false,
		},
		"interrupted": {
			"slow 600 say never", []agentproto.Input{agenttest.Foldable("2", "say nor this"), agenttest.Foldable("3", "say nor that"),
				agentproto.Interrupt{}, agenttest.Further("4", "say after")},
			[]answer{{"after", []string{"4"}}}, 2, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !tt.always {
				need.Verify(t)
			}
			t.Parallel()
			s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *),Bash(echo *)")
			s.begin(tt.begin)
			s.Send(tt.sent...)
			for _, want := range tt.want {
				if f := s.Next(); f.Status != agentproto.StatusOK || !slices.Equal(f.Turns(), want.turns) || f.Result != want.text {
					t.Errorf("got %+v, want %+v", f, want)
				}
			}
			s.WantExit(0)
			if n := len(s.model.MessageCalls()); n != tt.calls {
				t.Errorf("%d calls of the model, want %d", n, tt.calls)
			}
		})
	}
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
