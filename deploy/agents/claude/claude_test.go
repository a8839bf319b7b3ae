package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/testkit/fakes/anthropic"
)

// These tests run the real Claude Code against a model that does what it is told.

func TestConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open("CLAUDE_MODEL=claude-fake-1")
	s.send(first("1", "", "say hello"))
	f := s.says("1", "hello")
	if !isUUID(f.NewSessionID) {
		t.Errorf("session %q", f.NewSessionID)
	}
	s.send(message("2", "recall"))
	s.says("2", "Before: say hello")
	s.ends(0)
	if model := r.model.MessageCalls()[0].Request.Model; model != "claude-fake-1" {
		t.Errorf("model %q", model)
	}

	again := r.open("AGENT_MODEL=claude-fake-2")
	again.send(first("3", f.NewSessionID, "recall"))
	if g := again.says("3", "Before: say hello\nrecall"); g.NewSessionID != f.NewSessionID {
		t.Errorf("session %q became %q", f.NewSessionID, g.NewSessionID)
	}
	again.ends(0)
	asked := r.model.MessageCalls()
	if model := asked[len(asked)-1].Request.Model; model != "claude-fake-2" {
		t.Errorf("model %q", model)
	}
	for _, c := range r.model.Calls() {
		if c.Method != anthropic.MethodMessages {
			t.Errorf("it called %s", c.Method)
		}
	}
}

func TestPipedWhileItThinks(t *testing.T) {
	t.Parallel()
	s := newRig(t).open()
	s.send(first("1", "", "slow 1 say one"))
	s.asked("slow 1 say one")
	s.send(message("2", "say two"), message("3", "say three"))
	s.says("1", "one")
	s.says("2", "two")
	s.says("3", "three")
	s.ends(0)
}

// Claude Code itself would answer both with one result.
func TestPipedWhileItUsesATool(t *testing.T) {
	t.Parallel()
	s := newRig(t).open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *),Bash(echo *)")
	s.send(first("1", "", "tool Bash sleep 1; echo done"))
	s.asked("tool Bash sleep 1; echo done")
	s.send(message("2", "say two"))
	s.says("1", "The tool said: done")
	s.says("2", "two")
	s.ends(0)
}

func TestSessionThatIsGone(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"unknown":         "11111111-1111-4111-8111-111111111111",
		"another agent's": "demo-abc",
		"an option":       "--version",
	} {
		t.Run(name, func(t *testing.T) {
			s := newRig(t).open()
			s.send(first("1", id, "recall"), message("2", "say two"))
			f := s.says("1", lostNote+"\n\nBefore: ")
			if f.NewSessionID == id || !isUUID(f.NewSessionID) {
				t.Errorf("session %q", f.NewSessionID)
			}
			s.says("2", "two")
			s.ends(0)
		})
	}
}

// Groups with one home keep their conversations to themselves.
func TestSessionOfAnotherGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open()
	s.send(first("1", "", "say hello"))
	id := s.says("1", "hello").NewSessionID
	s.ends(0)
	if left, _ := os.ReadDir(r.home); len(left) != 0 {
		t.Errorf("in the home: %v", left)
	}
	info, err := os.Stat(filepath.Join(r.group, ".claude"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}

	r.group = t.TempDir()
	s = r.open()
	s.send(first("2", id, "recall"))
	s.says("2", lostNote+"\n\nBefore: ")
	s.ends(0)
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ key, words string }{
		"wrong": {"sk-ant-not-the-right-key-0001", "refuses the credentials (401)"},
		"none":  {"", "has no credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.key = tc.key
			s := r.open("CLAUDE_CODE_MAX_RETRIES=1")
			s.send(first("1", "", "say hello"))
			s.fails("1", tc.words)
			s.ends(1)
		})
	}
}

func TestFailingAPI(t *testing.T) {
	t.Parallel()
	always := func(f anthropic.Fault) anthropic.Fault { f.Times = -1; return f }
	for name, tc := range map[string]struct {
		fault anthropic.Fault
		words string // "" if it recovers
		calls int    // at most
	}{
		"rate limit, then fine":    {anthropic.Fault{Status: 429, Times: 2}, "", 3},
		"rate limit for good":      {always(anthropic.Fault{Status: 429}), "rate limit", 3},
		"rate limit for an hour":   {always(anthropic.Fault{RetryAfter: 3600}), "rate limit", 1},
		"overload, then fine":      {anthropic.Fault{Status: 529, Times: 2}, "", 3},
		"overload for good":        {always(anthropic.Fault{Status: 529}), "overloaded", 3},
		"failure for good":         {always(anthropic.Fault{Status: 500}), "is failing (500)", 3},
		"refused for its form":     {always(anthropic.Fault{Status: 400, Description: "max_tokens: too large"}), "max_tokens: too large", 3},
		"no such model":            {always(anthropic.Fault{Status: 404}), "CLAUDE_MODEL", 3},
		"no credit":                {anthropic.Fault{Status: 402}, "no credit", 1},
		"broken off, then fine":    {anthropic.Fault{Drop: true, After: true}, "", 2},
		"a proxy's page":           {always(anthropic.Fault{Status: 503, Body: "<html>{no}</html>"}), "is failing (503)", 3},
		"out of reach, then there": {anthropic.Fault{Drop: true}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRig(t).open("CLAUDE_CODE_MAX_RETRIES=2")
			s.model.InjectFault(tc.fault)
			s.send(first("1", "", "say hello"), message("2", "say two"))
			if tc.words != "" {
				s.fails("1", tc.words)
				s.ends(1)
			} else {
				s.says("1", "hello")
				s.says("2", "two")
				s.ends(0)
			}
			asked := s.model.Calls()
			if tc.words == "" {
				asked = asked[:len(asked)-1] // of the second message
			}
			if len(asked) > tc.calls {
				t.Errorf("%d calls, want %d", len(asked), tc.calls)
			}
		})
	}
}

func TestUnreachableAPI(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.model.Close(); err != nil {
		t.Fatal(err)
	}
	s := r.open("CLAUDE_CODE_MAX_RETRIES=1")
	s.send(first("1", "", "say hello"))
	s.fails("1", "Connection")
	s.ends(1)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	t.Run("and go", func(t *testing.T) {
		s := newRig(t).open()
		s.send(first("1", "", "slow 600 say never"))
		s.asked("slow 600 say never")
		s.send(message("2", "say nor this"), agentproto.Interrupt{})
		begun := time.Now()
		s.ends(0)
		// After its grace of a second gated would terminate the agent.
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if n := len(s.model.MessageCalls()); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
	})
	t.Run("and go on", func(t *testing.T) {
		s := newRig(t).open("CLAUDE_ALLOWED_TOOLS=Bash")
		s.send(agentproto.Interrupt{}, first("1", "", "tool Bash sleep 600"))
		s.asked("tool Bash sleep 600")
		s.send(agentproto.Interrupt{}, agentproto.Interrupt{}, message("2", "slow 600 say never"))
		s.asked("slow 600 say never")
		s.send(agentproto.Interrupt{}, message("3", "say after"))
		s.says("3", "after")
		s.send(agentproto.Interrupt{})
		s.ends(0)
	})
}

func TestEndOfInput(t *testing.T) {
	t.Parallel()
	s := newRig(t).open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *)")
	s.send(first("1", "", "tool Bash sleep 1"), message("2", "tool Bash mkfifo denied"), message("3", "say three"))
	rest, code := s.end()
	if len(rest) != 3 || code != 0 || rest[2].Result != "three" || !strings.Contains(rest[1].Result, "an operator may allow it") {
		t.Errorf("exit code %d, frames %+v", code, rest)
	}
	t.Run("before anything", func(t *testing.T) { newRig(t).open().ends(0) })
	t.Run("nonsense", func(t *testing.T) {
		s := newRig(t).open()
		s.send(first("1", "", "slow 1 say hello"))
		if _, err := s.stdin.Write([]byte("nonsense\n")); err != nil {
			t.Fatal(err)
		}
		s.says("1", "hello")
		s.ends(1)
	})
}

func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open()
	s.send(first("1", "", "say hello"))
	id := s.says("1", "hello").NewSessionID
	s.send(message("2", "slow 600 say never"), message("3", "say three"))
	s.asked("slow 600 say never")
	kill(t, s.cliPID(), syscall.SIGKILL)
	s.fails("2", "ended in the middle of its work: signal: killed")
	s.ends(1)

	s = r.open()
	s.send(first("4", id, "recall"))
	if f := s.next(); !strings.HasPrefix(f.Result, "Before: say hello") {
		t.Errorf("got %+v", f)
	}
	s.ends(0)
}

// Commands run in sessions of their own; what ends the run ends them too.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*session){
		"terminated": func(s *session) { kill(s.t, s.cmd.Process.Pid, syscall.SIGTERM) },
		"crashed":    func(s *session) { kill(s.t, s.cliPID(), syscall.SIGKILL); s.fails("1", "signal: killed") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newRig(t).open("CLAUDE_ALLOWED_TOOLS=Bash")
			running := filepath.Join(s.group, "running")
			if err := syscall.Mkfifo(running, 0o600); err != nil {
				t.Fatal(err)
			}
			s.send(first("1", "", "tool Bash echo > running; exec sleep 600"))
			if _, err := os.ReadFile(running); err != nil { // waits for the command
				t.Fatal(err)
			}
			all := descendants(t, s.cmd.Process.Pid)
			if len(all) < 2 {
				t.Fatalf("Claude Code and the command are %v", all)
			}
			end(s)
			s.ends(1)
			for _, pid := range all {
				if err := syscall.Kill(pid, 0); err == nil {
					t.Errorf("process %d is still there", pid)
				}
			}
		})
	}
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open("CLAUDE_ALLOWED_TOOLS=Bash(mkfifo allowed)")
	s.send(first("1", "", "tool Bash mkfifo allowed"))
	s.says("1", "The tool said: (Bash completed with no output)")
	s.send(message("2", "tool Bash mkfifo denied"))
	if f := s.next(); !strings.Contains(f.Result, "The tool failed: Nobody can be asked for permission here.") ||
		!strings.Contains(f.Result, "adding Bash to CLAUDE_ALLOWED_TOOLS") {
		t.Errorf("got %+v", f)
	}
	file := filepath.Join(r.group, "notes.txt")
	s.send(message("3", `tool Write {"file_path":"`+file+`","content":"x"}`))
	if f := s.next(); !strings.HasPrefix(f.Result, "The tool said: File created") {
		t.Errorf("got %+v", f)
	}
	outside := filepath.Join(r.home, "notes.txt")
	s.send(message("4", `tool Write {"file_path":"`+outside+`","content":"x"}`))
	if f := s.next(); !strings.HasPrefix(f.Result, "The tool failed: Nobody can be asked") {
		t.Errorf("got %+v", f)
	}
	s.send(message("5", `tool AskUserQuestion {"questions":[]}`))
	if f := s.next(); !strings.HasPrefix(f.Result, "The tool failed:") {
		t.Errorf("got %+v", f)
	}
	s.ends(0)
	for path, want := range map[string]bool{filepath.Join(r.group, "allowed"): true, filepath.Join(r.group, "denied"): false, file: true, outside: false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestBypassAsRoot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open("CLAUDE_PERMISSION_MODE=bypassPermissions", "IS_SANDBOX=1")
	s.send(first("1", "", "tool Bash touch file"))
	s.says("1", "The tool said: (Bash completed with no output)")
	s.ends(0)
	if os.Geteuid() == 0 {
		s = r.open("CLAUDE_PERMISSION_MODE=bypassPermissions")
		s.send(first("1", "", "say hello"))
		s.fails("1", "refuses CLAUDE_PERMISSION_MODE=bypassPermissions as root")
		s.ends(1)
	}
}

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ set, words string }{
		"mode":     {"CLAUDE_PERMISSION_MODE=nonsense", "'nonsense' is invalid"},
		"argument": {"CLAUDE_ARGS=--nonsense", "unknown option"},
		"program":  {"CLAUDE_COMMAND=/nowhere/claude", "CLAUDE_COMMAND has to name its program"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRig(t).open(tc.set)
			s.send(first("1", "", "say hello"), message("2", "say two"))
			s.fails("1", tc.words)
			s.ends(1)
		})
	}
	t.Run("number", func(t *testing.T) {
		s := newRig(t).open("CLAUDE_CODE_MAX_RETRIES=-1")
		s.ends(exitConfig)
	})
}

const mcpToken = "token-of-the-tools-0001"

// tools is an MCP server with one tool, for whoever has the token.
func tools(t *testing.T, called chan<- string) *agentproto.MCP {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Text string } }
		}
		switch {
		case r.Header.Get("Authorization") != "Bearer "+mcpToken:
			w.WriteHeader(http.StatusUnauthorized)
			return
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case json.NewDecoder(r.Body).Decode(&in) != nil || in.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		var result string
		switch in.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"send_message","description":"d","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}`
		case "tools/call":
			called <- in.Params.Arguments.Text
			result = `{"content":[{"type":"text","text":"sent"}]}`
		default:
			result = `{}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(in.ID) + `,"result":` + result + `}`))
	}))
	t.Cleanup(server.Close)
	return &agentproto.MCP{URL: server.URL, Token: mcpToken}
}

func TestTools(t *testing.T) {
	t.Parallel()
	called := make(chan string, 1)
	s := newRig(t).open("CLAUDE_ALLOWED_TOOLS=Bash", "CLAUDE_CODE_MAX_RETRIES=0")
	start := first("1", "", `tool mcp__arizuko__send_message {"text":"hi"}`)
	start.MCP = tools(t, called)
	s.send(start)
	s.says("1", "The tool said: sent")
	if got := <-called; got != "hi" {
		t.Errorf("called with %q", got)
	}
	for _, name := range []string{"cmdline", "environ"} {
		content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cliPID()), name))
		if err != nil || strings.Contains(string(content), mcpToken) {
			t.Errorf("%s: %v, %q", name, err, content)
		}
	}
	s.send(message("2", "tool Bash env"))
	if f := s.next(); !strings.Contains(f.Result, "ANTHROPIC_API_KEY=[redacted]") || strings.Contains(f.Result, "MCP_TOKEN") {
		t.Errorf("got %+v", f)
	}
	s.ends(0)
}

func TestToolsThatAreNotThere(t *testing.T) {
	t.Parallel()
	s := newRig(t).open()
	start := first("1", "", "say hello")
	start.MCP = &agentproto.MCP{URL: "http://127.0.0.1:1/mcp", Token: mcpToken}
	s.send(start)
	s.says("1", "hello")
	s.ends(0)
	if !strings.Contains(s.log.String(), "tools of arizuko: failed") {
		t.Error("the log does not say so")
	}
}

func TestOddTexts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.SetModel(func(in anthropic.Request) anthropic.Reply {
		if in.Commands()[len(in.Commands())-1] == "much" {
			return anthropic.Reply{Text: strings.Repeat("\x01é", maxResult)}
		}
		var said anthropic.Content
		for _, m := range in.Messages {
			if m.Role == "user" {
				said = m.Content
			}
		}
		return anthropic.Reply{Text: "<" + said[len(said)-1].Text + ">"}
	})
	s := r.open()
	s.send(agentproto.Start{TurnID: "1", Prompt: "/clear"}, agentproto.Message{TurnID: "2", Prompt: "\x00\x1b\u2028\"\\\r\n\xff end"},
		agentproto.Message{TurnID: "3", Prompt: strings.Repeat("word ", 20_000) + "end"}, message("4", "much"), agentproto.Message{TurnID: "5"})
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		f := s.next()
		if f.Status != agentproto.StatusOK || f.TurnID != id {
			t.Errorf("got %s for turn %s: %.200q", f.Status, f.TurnID, f.Result+f.Error)
		}
		switch id {
		case "2", "3":
			if !strings.Contains(f.Result, " end") {
				t.Errorf("turn %s: %.200q", id, f.Result)
			}
		case "4":
			if !strings.HasSuffix(f.Result, " bytes]") {
				t.Errorf("an answer of %d bytes", len(f.Result))
			}
		}
	}
	s.ends(0)
}
