package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/need"
)

// waitForUser is how long a call of ask_user waits in these tests: the CLI looks every 30 seconds whether a call is idle.
const waitForUser = 40 * time.Second

// A call of ask_user lasts as long as its user takes. The CLI gives a call up after MCP_TOOL_TIMEOUT, and after
// CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT without a message of the server, by default five minutes: white space is no message.
func TestAgent_ToolThatWaits_LastsUntilItsAnswer(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	for _, tt := range []struct {
		name  string
		extra []string
		want  string
	}{
		{"with the agent's settings", nil, "The tool said: sent"},
		{"with a shorter timeout", []string{"MCP_TOOL_TIMEOUT=2000"}, "timed out"},
		{"with a shorter idle timeout", []string{"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT=2000"}, "sent no response or progress"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			called := make(chan string, 9)
			s := newFixture(t).open(tt.extra...)
			start := agenttest.First("1", "", `tool mcp__arizuko__send_message {"text":"hi"}`)
			start.MCP = slowTools(t, called, waitForUser)
			s.Send(start)
			if f := s.Next(); !strings.Contains(f.Result, tt.want) {
				t.Errorf("answer %+v, want %q", f, tt.want)
			}
			if n := len(called); n != 1 {
				t.Errorf("%d calls", n)
			}
			s.WantExit(0)
		})
	}
}

// ASK_TIMEOUT is 24 hours at most.
func TestCLIEnviron_TimeoutsOfTools_AreLongerThanAQuestionIsOpen(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"MCP_TOOL_TIMEOUT", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"} {
		ms := 0
		for _, entry := range (&Config{}).cliEnviron() {
			if value, found := strings.CutPrefix(entry, name+"="); found {
				ms, _ = strconv.Atoi(value)
			}
		}
		if d := time.Duration(ms) * time.Millisecond; d <= 24*time.Hour {
			t.Errorf("%s is %v", name, d)
		}
	}
}
