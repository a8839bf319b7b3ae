package main

import (
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/need"
)

// A turn is taken back by the name of the session before it.

// wantSameConversation fails the test unless two names of sessions are of the same one, after different answers.
func wantSameConversation(t *testing.T, a, b string) {
	t.Helper()
	before, ok := readConversation(a)
	after, alsoOK := readConversation(b)
	if !ok || !alsoOK || before.id != after.id || before.message == after.message {
		t.Errorf("session %q became %q", a, b)
	}
}

// turns answers turns in one run that resumes a session, and returns the name after each one.
func (r *fixture) turns(id string, orders ...string) (names []string) {
	r.t.Helper()
	return r.turnsWith([]string{"CLAUDE_ALLOWED_TOOLS=Bash"}, id, orders...)
}

// turnsWith is turns with settings.
func (r *fixture) turnsWith(set []string, id string, orders ...string) (names []string) {
	r.t.Helper()
	s := r.open(set...)
	for i, order := range orders {
		if i == 0 {
			s.Send(agenttest.First("1", id, order))
		} else {
			s.Send(agenttest.Further("1", order))
		}
		f := s.Next()
		if f.Status != agentproto.StatusOK {
			r.t.Fatalf("%s: got %+v", order, f)
		}
		names = append(names, f.NewSessionID)
	}
	s.WantExit(0)
	return names
}

// wantAsked fails the test unless the last request to the model has some texts and lacks others.
func (r *fixture) wantAsked(has, lacks []string) {
	r.t.Helper()
	calls := r.model.MessageCalls()
	body := string(calls[len(calls)-1].Body)
	for _, text := range has {
		if !strings.Contains(body, text) {
			r.t.Errorf("the model was asked without %q", text)
		}
	}
	for _, text := range lacks {
		if strings.Contains(body, text) {
			r.t.Errorf("the model was asked with %q", text)
		}
	}
}

func TestAgent_EarlierSession_LeavesOutLaterTurns(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	names := r.turns("", "say one", "tool Bash echo two", "say three")
	for _, name := range names[1:] {
		wantSameConversation(t, names[0], name)
	}
	fourth := r.turns(names[0], "say four")
	r.wantAsked([]string{"say one", "say four"}, []string{"echo two", "say three"})
	fifth := r.turns(fourth[0], "say five")
	r.wantAsked([]string{"say one", "say four", "say five"}, []string{"echo two", "say three"})

	sixth := r.turns(fourth[0], "say six")
	r.wantAsked([]string{"say one", "say four", "say six"}, []string{"say five"})
	r.turns(names[0], "say seven")
	r.wantAsked([]string{"say one", "say seven"}, []string{"echo two", "say four", "say six"})
	for name, taken := range map[string]string{"third": names[2], "fifth": fifth[0], "sixth": sixth[0]} {
		t.Run(name, func(t *testing.T) { r.wantLost(taken) }) // from a branch that was left
	}
}

// A turn without an answer does not change the session's name. What it did stays known, unless it was taken back.
func TestAgent_UnfinishedTurn_StaysInSession(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	for name, end := range map[string]func(s *session, order string){
		"interrupted": func(s *session, order string) {
			s.Send(agenttest.Further("3", order))
			s.waitCall(order)
			s.Send(agentproto.Interrupt{})
			s.WantExit(0)
		},
		"failed": func(s *session, order string) {
			s.model.InjectFault(always(529))
			s.Send(agenttest.Further("3", order))
			s.WantError("3", agentproto.KindTransient, "overloaded")
			s.WantExit(1)
			s.model.ClearFaults()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			s := r.open("CLAUDE_ALLOWED_TOOLS=Bash", "CLAUDE_CODE_MAX_RETRIES=0")
			s.Send(agenttest.First("1", "", "say one"))
			first := s.WantAnswer("1", "one").NewSessionID
			s.Send(agenttest.Further("2", "say two"))
			second := s.WantAnswer("2", "two").NewSessionID
			end(s, "tool Bash sleep 601")
			fourth := r.turns(second, "say four")
			r.wantAsked([]string{"say one", "say two", "sleep 601", "say four"}, nil)

			s = r.open("CLAUDE_ALLOWED_TOOLS=Bash", "CLAUDE_CODE_MAX_RETRIES=0") // and with a turn taken back before
			s.Send(agenttest.First("1", first, "say five"))
			fifth := s.WantAnswer("1", "five").NewSessionID
			end(s, "tool Bash sleep 602")
			sixth := r.turns(fifth, "say six")
			r.wantAsked([]string{"say one", "say five", "sleep 602", "say six"}, []string{"say two", "sleep 601", "say four"})
			r.wantLost(fourth[0])

			s = r.open("CLAUDE_ALLOWED_TOOLS=Bash", "CLAUDE_CODE_MAX_RETRIES=0") // and is then taken back itself
			s.Send(agenttest.First("1", sixth[0], "say seven"))
			seventh := s.WantAnswer("1", "seven").NewSessionID
			end(s, "tool Bash sleep 603")
			r.turns(seventh+agentproto.RewindSuffix, "say eight", "say nine")
			r.wantAsked([]string{"say six", "say seven", "say eight", "say nine"}, []string{"sleep 603"})
		})
	}
}

// Without an answer on the branch that it began, a session goes on where it was resumed.
func TestAgent_FirstTurnOfBranchFails_IsResumedBefore(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	r := newFixture(t)
	names := r.turns("", "say one", "say two", "say three")
	s := r.open("CLAUDE_CODE_MAX_RETRIES=0")
	s.model.InjectFault(always(529))
	s.Send(agenttest.First("4", names[0], "say four"))
	if f := s.WantError("4", agentproto.KindTransient, "overloaded"); f.NewSessionID != names[0] {
		t.Errorf("session %q, want %q", f.NewSessionID, names[0])
	}
	s.WantExit(1)
	s.model.ClearFaults()
	r.wantLost(names[2]) // and is not taken for the newest
	r.turns(names[0], "say five")
	r.wantAsked([]string{"say one", "say five"}, []string{"say two", "say three"})
}

// Earlier versions named a session as Claude Code does.
func TestAgent_NameWithoutMessage(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	r := newFixture(t)
	s := r.open("CLAUDE_CODE_MAX_RETRIES=0")
	s.model.InjectFault(always(529))
	s.Send(agenttest.First("1", "", "say one"))
	plain := s.WantError("1", agentproto.KindTransient, "overloaded").NewSessionID
	s.WantExit(1)
	s.model.ClearFaults()
	if !isUUID(plain) {
		t.Fatalf("session %q", plain)
	}
	r.turns(plain, "say two")
	r.wantAsked([]string{"say one", "say two"}, nil)
	r.wantLost(plain) // it is older than that answer, which Claude Code would bring back
}

// The answers of Claude Code to a message that is not in the conversation.
func TestAgent_MessageUnknownOrCompacted_SessionIsLost(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	t.Run("unknown", func(t *testing.T) {
		t.Parallel()
		r := newFixture(t)
		uuid, _, _ := strings.Cut(r.turns("", "say one")[0], "@")
		r.wantLost(uuid + "@" + newUUID())
	})
	t.Run("compacted", func(t *testing.T) {
		t.Parallel()
		r := newFixture(t)
		long := strings.Repeat("word ", 10_000) + "\n"
		set := []string{"CLAUDE_MODEL=claude-sonnet-4-5", "CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=30"}
		names := r.turnsWith(set, "", "say one", long+"say two", long+"say three", "say four")
		r.turns(names[2], "say five")
		r.wantAsked([]string{"This session is being continued", "say three", "say five"}, []string{"say four"})
		r.turns(names[1], "say six") // the last message before the compaction is kept
		r.wantAsked([]string{"This session is being continued", "say six"}, []string{"say three"})
		r.wantLost(names[0])
	})
}

// The last message of a subagent is in another conversation.
func TestAgent_SubagentAnswered_NameIsOfTheAnswer(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	r := newFixture(t)
	r.model.SetModel(func(q anthropic.Request) anthropic.Reply {
		commands := q.Commands()
		if commands[len(commands)-1] == "delegate" && asked(q) == 0 {
			return anthropic.Reply{Text: "I ask.", Tools: []anthropic.ToolUse{{Name: "Agent",
				Input: map[string]any{"description": "d", "prompt": "say sub", "subagent_type": "general-purpose"}}}}
		}
		return anthropic.FollowCommand(q)
	})
	names := r.turns("", "delegate", "say two")
	r.turns(names[0], "say three")
	r.wantAsked([]string{"delegate", "I ask.", "sub", "say three"}, []string{"say two"})
}

func TestReadConversation(t *testing.T) {
	t.Parallel()
	id, message := newUUID(), newUUID()
	for name, want := range map[string]conversation{"": {}, id: {id, ""}, id + "@" + message: {id, message}} {
		if got, ok := readConversation(name); !ok || got != want || got.name() != name {
			t.Errorf("%q: %+v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"demo-1", "@", id + "@", "@" + message, id + "@--version", id + "@" + message + "@", "../" + id} {
		if got, ok := readConversation(name); ok {
			t.Errorf("%q: %+v", name, got)
		}
	}
}
