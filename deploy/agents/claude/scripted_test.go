package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"arizuko/deploy/agents/internal/subprocess"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/need"
)

// For behavior that the real Claude Code cannot be made to show, the test binary is a fake CLI: a helper process
// with SCRIPT in its environment.

// scripts are lines that the fake CLI prints for each user message; UUID is that of the message.
var scripts = map[string][]string{
	"newer": {
		`{"type":"prophecy","result":{"is":"odd"}}`, `{"type":"system","subtype":"weather","error":{"a":1}}`, `[]`, `null`, `not JSON`, ``,
		`{"type":"stream_event","event":{}}`, `{"type":"assistant","message":{"content":[]},"error":null}`,
		`{"type":"result","subtype":"success","result":"fine","session_id":"s","user_message_uuids":["UUID"],"origin":null,"extra":[1]}`,
	},
	"retry": {
		`{"type":"system","subtype":"api_retry","attempt":1,"error_status":529,"retry_delay_ms":5}`, `{"type":"system","subtype":"api_retry","attempt":2}`,
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}`, `{"type":"stream_event","event":{"type":"message_start","message":{"id":"n"}}}`,
		`{"type":"result","subtype":"success","result":"fine","session_id":"s","user_message_uuids":["UUID"]}`,
	},
	"events": {
		`{"type":"stream_event","event":7}`, `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":5}}}`,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"1","name":"odd","input":[]},{"type":"tool_use","id":"2","name":"Bash","input":{"command":"ls"}}]}}`,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"9","name":"Bash","input":{}}]},"parent_tool_use_id":"2"}`,
		`{"type":"user","message":"text"}`, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"2"},{"type":"tool_result","tool_use_id":"8"}]}}`,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"3","name":"TodoWrite","input":{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"pending"}]}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"3"}]},"tool_use_result":"fine"}`,
		`{"type":"result","subtype":"success","result":"fine","session_id":"s","user_message_uuids":["UUID"],"usage":[],"modelUsage":5,"total_cost_usd":"much"}`,
	},
	"older": {`{"type":"result","subtype":"success","result":"fine","session_id":"s"}`},
	"unprompted": {
		`{"type":"result","subtype":"success","result":"too early","origin":{"kind":"task-notification"}}`,
		`{"type":"result","subtype":"success","result":"fine","session_id":"s","user_message_uuids":["UUID"]}`,
		`{"type":"result","subtype":"success","result":"and more","session_id":"s","origin":{"kind":"task-notification"}}`,
		`{"type":"result","subtype":"success","result":"another's","user_message_uuids":["11111111-1111-4111-8111-111111111111"]}`,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"origin":{"kind":"task-notification"}}`,
	},
	"silent": {`{"type":"result","subtype":"success","result":"","session_id":"s","user_message_uuids":["UUID"]}`},
	"odd":    {`{"type":"result","subtype":"success","result":{"text":"fine"},"user_message_uuids":["UUID"]}`},
	"turns":  {`{"type":"result","subtype":"error_max_turns","is_error":false,"user_message_uuids":["UUID"]}`},
	"json":   {`{"type":"result","subtype":"success","is_error":true,"result":"API Error: {\"type\":\"error\"}","user_message_uuids":["UUID"]}`},
	"hook":   {`{"type":"control_request","request_id":"r","request":{"subtype":"hook_callback"}}`, `ECHO`},
	"ask":    {`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Odd","input":{}}}`, `ECHO`},
	"stay":   {`{"type":"result","subtype":"success","result":"fine","session_id":"s"}`, `STAY`},
	"quit":   {`QUIT`},
	"huge":   {`HUGE`},
}

// fakeCLI runs a script and returns the exit code.
func fakeCLI(script string) int {
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var user userLine
		if json.Unmarshal(in.Bytes(), &user) != nil || user.UUID == "" {
			continue
		}
		lines, known := scripts[script]
		if !known {
			return 2
		}
		for _, line := range lines {
			switch line {
			case "QUIT":
				fmt.Fprint(os.Stderr, "first line\nlast line with "+os.Getenv("ANTHROPIC_API_KEY"))
				return 0
			case "STAY":
				<-terminate
				fmt.Fprintln(os.Stderr, "terminating")
				return 143
			case "HUGE":
				fmt.Println(strings.Repeat("x", subprocess.MaxLine+1))
			case "ECHO":
				if !in.Scan() {
					return 3
				}
				result, _ := json.Marshal(in.Text())
				fmt.Printf(`{"type":"result","subtype":"success","result":%s,"session_id":"s"}`+"\n", result)
			default:
				fmt.Println(strings.ReplaceAll(line, "UUID", user.UUID))
			}
		}
	}
	return 0
}

func TestAgent_UnusualCLIOutput_IsHandled(t *testing.T) {
	need.Verify(t)
	ok := func(id, result string) agentproto.Frame {
		return agentproto.Frame{Status: agentproto.StatusOK, TurnID: id, Result: result}
	}
	bad := func(text string) agentproto.Frame {
		return agentproto.Frame{Status: agentproto.StatusError, TurnID: "1", Error: text}
	}
	fine := []agentproto.Frame{ok("1", "fine"), ok("2", "fine")}
	tests := map[string][]agentproto.Frame{
		"newer":      fine,
		"older":      fine,
		"silent":     {ok("1", ""), ok("2", "")},
		"unprompted": {ok("1", "fine"), ok("1", "and more"), ok("1", "too early"), ok("2", "fine"), ok("2", "and more")},
		"odd":        {bad("invalid answer of Claude Code")},
		"turns":      {bad("error_max_turns")},
		"json":       {bad("Claude Code failed: API Error:")},
		"hook":       {ok("1", `"error":"not supported by this client"`), ok("2", `"request_id":"r"`)},
		"ask":        {ok("1", `"behavior":"deny"`), ok("2", "adding Odd to CLAUDE_ALLOWED_TOOLS")},
		"quit":       {bad("unexpected exit: last line with [redacted]")},
		"huge":       {bad("token too long")},
	}
	for script, want := range tests {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := fixtureWith(t, os.Args[0]).open("SCRIPT="+script, "CLAUDE_PERMISSIONS=deny")
			s.Send(agenttest.First("1", "", "one"), agenttest.Further("2", "two"))
			for _, w := range want {
				f := s.Next()
				if f.Status != w.Status || f.TurnID != w.TurnID || !strings.Contains(f.Result, w.Result) || !strings.Contains(f.Error, w.Error) {
					t.Errorf("got %+v, want %+v", f, w)
				}
			}
			code := 0
			if want[0].Status == agentproto.StatusError {
				code = 1
			}
			s.WantExit(code)
		})
	}
}

// The CLI gets SIGTERM when the agent does, and if it does not exit at the end of its input.
func TestAgent_CLIStays_IsTerminated(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(*session)
		code int
	}{
		"agent terminated": {func(s *session) {
			kill(s.t, s.Cmd.Process.Pid, syscall.SIGTERM)
			if f, err := s.Outputs.NextFrame(); err != io.EOF { // before the end of its input
				s.t.Errorf("got %+v, %v; want the end of the agent", f, err)
			}
		}, 1},
		"end of input": {func(*session) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fixtureWith(t, os.Args[0]).open("SCRIPT=stay")
			s.Send(agenttest.First("1", "", "one"))
			s.WantAnswer("1", "fine")
			tt.end(s)
			s.WantExit(tt.code)
			if !strings.Contains(s.Log.String(), "terminating") {
				t.Error("the CLI got no SIGTERM")
			}
		})
	}
}
