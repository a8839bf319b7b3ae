package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/need"
)

// How the real Claude Code reports each failure, and the kind that the agent makes of it.

// remembered opens the agent, answers one turn, and returns the session.
func (r *fixture) remembered(extra ...string) (s *session, id string) {
	r.t.Helper()
	s = r.open(extra...)
	s.Send(agenttest.First("1", "", "say hello"))
	return s, s.WantAnswer("1", "hello").NewSessionID
}

// wantMemory fails the test unless a new run with the session knows the first turn.
func (r *fixture) wantMemory(id string) {
	r.t.Helper()
	s := r.open()
	s.Send(agenttest.First("9", id, "recall"))
	f := s.Next()
	if !strings.HasPrefix(f.Result, "Before: say hello") {
		r.t.Errorf("with session %s got %+v", id, f)
	}
	wantSameConversation(r.t, id, f.NewSessionID)
	s.WantExit(0)
}

func TestAgent_FailingAPI_KeepsConversation(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	reset := time.Now().Add(30 * time.Minute).Truncate(time.Second) // the header's unit
	const token = "CLAUDE_CODE_OAUTH_TOKEN="
	for name, tc := range map[string]struct {
		fault   anthropic.Fault
		kind    agentproto.Kind // "" if it recovers
		want    string
		calls   int    // at most
		seconds [2]int // retry_after, at least and at most
		set     string
		memory  bool // shown by another run; elsewhere the session in the frame suffices
	}{
		"rate limit, then fine":    {fault: anthropic.Fault{Status: 429, Times: 2}, calls: 3},
		"rate limit for ever":      {fault: always(429), kind: "transient", want: "rate limit", calls: 3, seconds: [2]int{1, 10}},
		"rate limit for 2 seconds": {fault: anthropic.Fault{RetryAfter: 2, Times: -1}, kind: "transient", want: "rate limit", calls: 3, seconds: [2]int{2, 10}},
		"rate limit for an hour":   {fault: anthropic.Fault{RetryAfter: 3600, Times: -1}, kind: "transient", want: "rate limit", calls: 1},
		"usage limit":              {fault: anthropic.Fault{ResetAt: reset, Times: -1}, kind: "transient", want: "rate limit", calls: 3, seconds: [2]int{0, 1800}, set: token},
		"overload, then fine":      {fault: anthropic.Fault{Status: 529, Times: 2}, calls: 3},
		"overload for ever":        {fault: always(529), kind: "transient", want: "overloaded", calls: 3, seconds: [2]int{1, 10}, memory: true},
		"failure for ever":         {fault: always(500), kind: "transient", want: "is failing (500)", calls: 3, seconds: [2]int{1, 10}},
		"a proxy's page":           {fault: anthropic.Fault{Status: 503, Body: "<html>{no}</html>", Times: -1}, kind: "transient", want: "is failing (503)", calls: 3, seconds: [2]int{1, 10}},
		"unreachable, then fine":   {fault: anthropic.Fault{Drop: true}, calls: 2},
		"unreachable for ever":     {fault: anthropic.Fault{Drop: true, Times: -1}, kind: "transient", want: "Connection", calls: 3},
		"response cut, then fine":  {fault: anthropic.Fault{Drop: true, After: true}, calls: 2},
		"response cut for ever":    {fault: anthropic.Fault{Drop: true, After: true, Times: -1}, kind: "transient", want: "Connection", calls: 6, memory: true},
		"error in the stream":      {fault: anthropic.Fault{Status: 529, After: true, Times: -1}, kind: "transient", want: "", calls: 6, seconds: [2]int{0, 10}},
		"nonsense in the stream":   {fault: anthropic.Fault{Body: "data: {no\n\n", After: true, Times: -1}, kind: "transient", want: "", calls: 6, seconds: [2]int{0, 10}},
		"wrong credentials":        {fault: always(401), kind: "permanent", want: "refuses the credentials (401)", calls: 2},
		"no permission":            {fault: always(403), kind: "permanent", want: "refuses the credentials (403)", calls: 3},
		"no credit":                {fault: always(402), kind: "permanent", want: "no credit", calls: 1},
		"no credit, older form":    {fault: described(400, "Your credit balance is too low to access the Anthropic API."), kind: "permanent", want: "no credit", calls: 1},
		"no such model":            {fault: always(404), kind: "permanent", want: "CLAUDE_MODEL", calls: 3},
		"too long":                 {fault: described(400, "prompt is too long: 250000 tokens > 200000 maximum"), kind: "permanent", want: "too long for the model", calls: 6, memory: true},
		"invalid request":          {fault: described(400, "max_tokens: too large"), kind: "permanent", want: "max_tokens: too large", calls: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			settings := []string{"CLAUDE_CODE_MAX_RETRIES=2"}
			if tc.set != "" {
				settings, r.key = append(settings, tc.set+r.key), ""
			}
			s, id := r.remembered(settings...)
			before := len(s.model.Calls())
			s.model.InjectFault(tc.fault)
			s.Send(agenttest.Further("2", "say two"))
			if tc.kind == "" {
				s.WantAnswer("2", "two")
				s.WantExit(0)
			} else {
				f := s.WantError("2", tc.kind, tc.want)
				least := tc.seconds[0]
				if !tc.fault.ResetAt.IsZero() {
					least = int(time.Until(tc.fault.ResetAt).Seconds())
				}
				if int(f.RetryAfter) < least || int(f.RetryAfter) > tc.seconds[1] || f.NewSessionID != id {
					t.Errorf("retry after %v s, session %q, want %v and %q", f.RetryAfter, f.NewSessionID, tc.seconds, id)
				}
				s.WantExit(1)
			}
			if n := len(s.model.Calls()) - before; n > tc.calls {
				t.Errorf("%d calls, want %d", n, tc.calls)
			}
			if tc.memory {
				s.model.ClearFaults()
				r.wantMemory(id)
			}
		})
	}
}

func always(status int) anthropic.Fault { return anthropic.Fault{Status: status, Times: -1} }

func described(status int, text string) anthropic.Fault {
	return anthropic.Fault{Status: status, Description: text, Times: -1}
}

// A conversation that has failed from its first turn on has a session too, unless the CLI was killed
// before it stored one.
func TestAgent_FirstTurnFails_NamesSession(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	t.Run("overload", func(t *testing.T) {
		t.Parallel()
		r := newFixture(t)
		s := r.open("CLAUDE_CODE_MAX_RETRIES=0")
		s.model.InjectFault(always(529))
		s.Send(agenttest.First("1", "", "say hello"))
		f := s.WantError("1", agentproto.KindTransient, "overloaded")
		s.WantExit(1)
		s.model.ClearFaults()
		s = r.open()
		s.Send(agenttest.First("1", f.NewSessionID, "say two"))
		wantSameConversation(t, f.NewSessionID, s.WantAnswer("1", "two").NewSessionID)
		s.WantExit(0)
		calls := s.model.MessageCalls()
		if body := string(calls[len(calls)-1].Body); !strings.Contains(body, "say hello") {
			t.Error("the model did not get the message of the failed turn")
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		s := newFixture(t).open()
		s.begin("slow 600 say hello")
		kill(s.t, s.cliPID(), syscall.SIGKILL)
		if f := s.WantError("1", agentproto.KindTransient, "signal: killed"); f.NewSessionID != "" {
			t.Errorf("it names the session %s", f.NewSessionID)
		}
		s.WantExit(1)
	})
}

// A run that cannot answer its first turn says why, and ends.
func TestAgent_FirstTurnImpossible_EndsRunWithError(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(*fixture)
		set     string
		kind    agentproto.Kind
		want    string
	}{
		"wrong key":       {func(r *fixture) { r.key = "sk-ant-not-the-right-key-0001" }, "LANG=C", "permanent", "refuses the credentials (401)"},
		"no key":          {func(r *fixture) { r.key = "" }, "LANG=C", "permanent", "has no credentials"},
		"unreachable API": {func(r *fixture) { _ = r.model.Close() }, "CLAUDE_CODE_MAX_RETRIES=1", "transient", "Connection"},
		"mode":            {nil, "CLAUDE_PERMISSION_MODE=nonsense", "permanent", "'nonsense' is invalid"},
		"argument":        {nil, "CLAUDE_ARGS=--nonsense", "permanent", "unknown option"},
		"program":         {nil, "CLAUDE_COMMAND=/nowhere/claude", "permanent", "set CLAUDE_COMMAND to its program"},
		"folder":          {nil, "CLAUDE_CONFIG_DIR=/dev/null/claude", "permanent", "cannot create the folder"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			if tt.prepare != nil {
				tt.prepare(r)
			}
			s := r.open(tt.set)
			s.Send(agenttest.First("1", "", "say hello"), agenttest.Further("2", "say two"))
			s.WantError("1", tt.kind, tt.want)
			s.WantExit(1)
			if n := len(s.model.MessageCalls()); n > 3 { // Claude Code would retry ten times
				t.Errorf("%d calls", n)
			}
		})
	}
	t.Run("number", func(t *testing.T) {
		s := newFixture(t).open("CLAUDE_CODE_MAX_RETRIES=-1")
		s.WantExit(exitConfig)
	})
}

func TestAgent_SessionCannotBeResumed_ReportsIt(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"deleted":    os.Remove,
		"empty":      func(path string) error { return os.Truncate(path, 0) },
		"noise":      func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("\x00\xff", 5000)), 0o600) },
		"unreadable": func(path string) error { return errorsOf(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			s, id := r.remembered()
			s.WantExit(0)
			if err := change(r.sessionFile(id)); err != nil {
				t.Fatal(err)
			}
			r.wantLost(id)
		})
	}
	for name, id := range map[string]string{
		"unknown":     "11111111-1111-4111-8111-111111111111",
		"other agent": "demo-abc",
		"an option":   "--version",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newFixture(t).wantLost(id)
		})
	}
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// sessionFile is where Claude Code keeps a session.
func (r *fixture) sessionFile(id string) string {
	r.t.Helper()
	uuid, _, _ := strings.Cut(id, "@")
	files, err := filepath.Glob(filepath.Join(r.group, ".claude", "projects", "*", uuid+".jsonl"))
	if err != nil || len(files) != 1 {
		r.t.Fatalf("files of session %s: %v, %v", id, files, err)
	}
	return files[0]
}

// wantLost fails the test unless a run reports that it cannot resume the session.
func (r *fixture) wantLost(id string) {
	r.t.Helper()
	s := r.open()
	before := len(s.model.Calls())
	s.Send(agenttest.First("1", id, "recall"), agenttest.Further("2", "say two"))
	s.WantError("1", agentproto.KindSession, "the session cannot be resumed")
	s.WantExit(1)
	if n := len(s.model.Calls()); n != before {
		r.t.Errorf("%d calls of the model without the session", n-before)
	}
}

func TestAgent_SessionFileCutOff_IsResumed(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	r := newFixture(t)
	s, id := r.remembered()
	s.WantExit(0)
	file := r.sessionFile(id)
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, info.Size()-20)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.wantMemory(id)
}

func TestAgent_CLIKilled_KeepsConversation(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	for name, order := range map[string]string{"in a turn": "slow 600 say never", "in a tool": "tool Bash sleep 600"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			s, id := r.remembered("CLAUDE_ALLOWED_TOOLS=Bash")
			s.Send(agenttest.Further("2", order), agenttest.Foldable("3", "say three"))
			s.waitCall(order)
			kill(t, s.cliPID(), syscall.SIGKILL)
			s.WantError("2", agentproto.KindTransient, "exited during a turn: signal: killed")
			s.WantExit(1)
			r.wantMemory(id)
		})
	}
	t.Run("between turns", func(t *testing.T) {
		t.Parallel()
		r := newFixture(t)
		s, id := r.remembered()
		pid := s.cliPID()
		kill(t, pid, syscall.SIGKILL)
		s.waitGone(pid)
		s.Send(agenttest.Further("2", "recall"))
		wantSameConversation(t, id, s.WantAnswer("2", "Before: say hello").NewSessionID)
		s.WantExit(0)
	})
}

// waitGone waits until the agent has no process with that id.
func (s *session) waitGone(pid int) {
	s.t.Helper()
	for deadline := time.Now().Add(maxWait); syscall.Kill(pid, 0) == nil; {
		if time.Now().After(deadline) {
			s.t.Fatalf("process %d is still there", pid)
		}
	}
}
