package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
)

func TestAgent_Permission_IsWhatUsersHaveAnswered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		option string
		change func(*agentproto.Answer)
		want   string
	}{
		"allowed":             {"Allow once", nil, `"behavior":"allow","updatedInput":{}`},
		"denied":              {"Deny", nil, "A user has denied this."},
		"expired":             {"", func(a *agentproto.Answer) { a.Reason = agentproto.AskExpired }, "No user has answered"},
		"refused":             {"", func(a *agentproto.Answer) { a.Reason, a.Problem = agentproto.AskRefused, "no user may answer" }, "CLAUDE_ALLOWED_TOOLS"},
		"of another input":    {"Allow once", func(a *agentproto.Answer) { a.PayloadHash = "sha256:0" }, `"behavior":"deny"`},
		"another option":      {"allow once", nil, `"behavior":"deny"`},
		"allowed but expired": {"Allow once", func(a *agentproto.Answer) { a.Reason = agentproto.AskExpired }, `"behavior":"deny"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fixtureWith(t, os.Args[0]).open("SCRIPT=ask")
			s.Send(agenttest.First("1", "", "one"))
			a := s.Question()
			if a.Check() != nil || a.Question != "May I use Odd with this input?" || a.Detail != "tool: \"Odd\"\ninput: {}" || !strings.HasSuffix(a.ID, "-1") {
				t.Errorf("asked %+v: %v", a, a.Check())
			}
			if tt.change == nil {
				tt.change = func(*agentproto.Answer) {}
			}
			s.Reply("1", a, tt.option, tt.change)
			if f := s.Next(); !strings.Contains(f.Result, tt.want) {
				t.Errorf("the CLI got %s, want %s", f.Result, tt.want)
			}
			s.WantExit(0)
		})
	}
}

func TestAgent_Permission_AtTheEndOfInput_IsDenied(t *testing.T) {
	t.Parallel()
	s := fixtureWith(t, os.Args[0]).open("SCRIPT=ask")
	s.Send(agenttest.First("1", "", "one"))
	s.Question()
	if rest, code := s.End(); len(rest) != 1 || !strings.Contains(rest[0].Result, `"behavior":"deny"`) || code != 0 {
		t.Errorf("exit code %d, frames %+v", code, rest)
	}
}

// With the real Claude Code, a tool that users allow runs, one that they deny does not, and a second use is asked
// again.
func TestAgent_Permission_OfTheRealCLI(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.open()
	s.Send(agenttest.First("1", "", "tool Bash mkfifo allowed"))
	a := s.Question()
	if a.Question != "May I use Bash with this input?" || !strings.Contains(a.Detail, "tool: \"Bash\"\ninput:\n  command: mkfifo allowed") {
		t.Errorf("asked %+v", a)
	}
	if _, err := os.Stat(filepath.Join(r.group, "allowed")); err == nil {
		t.Error("it ran before it was allowed")
	}
	s.Reply("1", a, "Allow once")
	s.WantAnswer("1", "The tool said: (Bash completed with no output)")
	s.Send(agenttest.Further("2", "tool Bash mkfifo denied"))
	b := s.Question()
	if b.PayloadHash == a.PayloadHash {
		t.Error("two commands have one hash")
	}
	s.Reply("2", b, "Deny")
	if f := s.Next(); !strings.Contains(f.Result, "A user has denied this.") {
		t.Errorf("got %+v", f)
	}
	s.Send(agenttest.Further("3", "tool Bash mkfifo allowed"))
	if c := s.Question(); c.PayloadHash != a.PayloadHash {
		t.Errorf("the same command is asked about as %+v, before as %+v", c, a)
	}
	s.Send(agentproto.Interrupt{}, agenttest.Further("4", "say still here"))
	if f := s.Next(); f.TurnID != "4" {
		t.Errorf("got %+v", f)
	}
	s.WantExit(0)
	for name, want := range map[string]bool{"allowed": true, "denied": false} {
		if _, err := os.Stat(filepath.Join(r.group, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
