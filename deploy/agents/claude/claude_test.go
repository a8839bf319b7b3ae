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

// These tests run the real Claude Code with a fake model that follows instructions.

func TestAgent_NextRun_ResumesSession(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.open("CLAUDE_MODEL=claude-fake-1")
	s.send(first("1", "", "say hello"))
	f := s.wantAnswer("1", "hello")
	if !isUUID(f.NewSessionID) {
		t.Errorf("session %q", f.NewSessionID)
	}
	s.send(message("2", "recall"))
	s.wantAnswer("2", "Before: say hello")
	s.wantExit(0)
	if model := r.model.MessageCalls()[0].Request.Model; model != "claude-fake-1" {
		t.Errorf("model %q", model)
	}

	again := r.open("AGENT_MODEL=claude-fake-2")
	again.send(first("3", f.NewSessionID, "recall"))
	if g := again.wantAnswer("3", "Before: say hello\nrecall"); g.NewSessionID != f.NewSessionID {
		t.Errorf("session %q became %q", f.NewSessionID, g.NewSessionID)
	}
	again.wantExit(0)
	calls := r.model.MessageCalls()
	if model := calls[len(calls)-1].Request.Model; model != "claude-fake-2" {
		t.Errorf("model %q", model)
	}
	for _, c := range r.model.Calls() {
		if c.Method != anthropic.MethodMessages {
			t.Errorf("unexpected call of %s", c.Method)
		}
	}
}

func TestAgent_MessagesDuringTurn_AnsweredInOrder(t *testing.T) {
	t.Parallel()
	s := newFixture(t).open()
	s.send(first("1", "", "slow 1 say one"))
	s.waitCall("slow 1 say one")
	s.send(message("2", "say two"), message("3", "say three"))
	s.wantAnswer("1", "one")
	s.wantAnswer("2", "two")
	s.wantAnswer("3", "three")
	s.wantExit(0)
}

// Claude Code itself would answer both with one result.
func TestAgent_MessageDuringToolCall_AnsweredSeparately(t *testing.T) {
	t.Parallel()
	s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *),Bash(echo *)")
	s.send(first("1", "", "tool Bash sleep 1; echo done"))
	s.waitCall("tool Bash sleep 1; echo done")
	s.send(message("2", "say two"))
	s.wantAnswer("1", "The tool said: done")
	s.wantAnswer("2", "two")
	s.wantExit(0)
}

// The CLI names the folder of a project's sessions after the working folder, and finds
// a session by its id in every one of them. Its memory is only in that of its project.
func TestAgent_FolderMoved_SessionGoesOn(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	groups := r.group
	r.group = filepath.Join(groups, "acme", "eng")
	if err := os.MkdirAll(r.group, 0o700); err != nil {
		t.Fatal(err)
	}
	s := r.open()
	s.send(first("1", "", "say hello"))
	id := s.wantAnswer("1", "hello").NewSessionID
	s.wantExit(0)
	for _, name := range []string{"acme+eng", "elsewhere", strings.Repeat("long", 60)} {
		to := filepath.Join(groups, name)
		if err := os.Rename(r.group, to); err != nil {
			t.Fatal(err)
		}
		r.group, r.home = to, t.TempDir()
		s = r.open()
		s.send(first("2", id, "recall"))
		if f := s.next(); f.Status != agentproto.StatusOK || f.NewSessionID != id || !strings.HasPrefix(f.Result, "Before: say hello") {
			t.Errorf("in %s: %+v", name, f)
		}
		s.wantExit(0)
		if name == "acme+eng" {
			if projects, err := filepath.Glob(filepath.Join(r.group, ".claude/projects/*")); len(projects) != 1 || err != nil {
				t.Errorf("projects %v, %v: its memory is in one of them", projects, err)
			}
		}
	}
}

// Groups that share a home do not share sessions.
func TestAgent_SessionOfOtherGroup_IsUnknown(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.open()
	s.send(first("1", "", "say hello"))
	id := s.wantAnswer("1", "hello").NewSessionID
	s.wantExit(0)
	if left, _ := os.ReadDir(r.home); len(left) != 0 {
		t.Errorf("files in the home: %v", left)
	}
	info, err := os.Stat(filepath.Join(r.group, ".claude"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}

	r.group = t.TempDir()
	s = r.open()
	s.send(first("2", id, "recall"))
	s.wantError("2", agentproto.KindSession, "No conversation found")
	s.wantExit(1)
}

func TestAgent_Interrupt_DropsOpenTurns(t *testing.T) {
	t.Parallel()
	t.Run("then end of input", func(t *testing.T) {
		s := newFixture(t).open()
		s.send(first("1", "", "slow 600 say never"))
		s.waitCall("slow 600 say never")
		s.send(message("2", "say nor this"), agentproto.Interrupt{})
		begun := time.Now()
		s.wantExit(0)
		// After its grace of a second gated would terminate the agent.
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the end took %v", took)
		}
		if n := len(s.model.MessageCalls()); n != 1 {
			t.Errorf("%d calls of the model, want 1", n)
		}
	})
	t.Run("then another turn", func(t *testing.T) {
		s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash")
		s.send(agentproto.Interrupt{}, first("1", "", "tool Bash sleep 600"))
		s.waitCall("tool Bash sleep 600")
		s.send(agentproto.Interrupt{}, agentproto.Interrupt{}, message("2", "slow 600 say never"))
		s.waitCall("slow 600 say never")
		s.send(agentproto.Interrupt{}, message("3", "say after"))
		s.wantAnswer("3", "after")
		s.send(agentproto.Interrupt{})
		s.wantExit(0)
	})
}

func TestAgent_EndOfInput_AnswersOpenTurns(t *testing.T) {
	t.Parallel()
	s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *)")
	s.send(first("1", "", "tool Bash sleep 1"), message("2", "tool Bash mkfifo denied"), message("3", "say three"))
	rest, code := s.end()
	if len(rest) != 3 || code != 0 || rest[2].Result != "three" || !strings.Contains(rest[1].Result, "an operator may allow it") {
		t.Errorf("exit code %d, frames %+v", code, rest)
	}
	t.Run("without a turn", func(t *testing.T) { newFixture(t).open().wantExit(0) })
	t.Run("invalid line", func(t *testing.T) {
		s := newFixture(t).open()
		s.send(first("1", "", "slow 1 say hello"))
		if _, err := s.stdin.Write([]byte("nonsense\n")); err != nil {
			t.Fatal(err)
		}
		s.wantAnswer("1", "hello")
		s.wantExit(1)
	})
}

// Commands run in separate sessions and must end with the run.
func TestAgent_EndOfRun_LeavesNoProcess(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*session){
		"terminated": func(s *session) {
			kill(s.t, s.cmd.Process.Pid, syscall.SIGTERM)
			s.wantError("1", agentproto.KindTransient, "was terminated")
		},
		"crashed": func(s *session) {
			kill(s.t, s.cliPID(), syscall.SIGKILL)
			s.wantError("1", agentproto.KindTransient, "signal: killed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash")
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
				t.Fatalf("processes of Claude Code and the command: %v", all)
			}
			end(s)
			s.wantExit(1)
			for _, pid := range all {
				if err := syscall.Kill(pid, 0); err == nil {
					t.Errorf("process %d still exists", pid)
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

func TestAgent_Permissions_DeniedUnlessAllowed(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.open("CLAUDE_ALLOWED_TOOLS=Bash(mkfifo allowed)")
	s.send(first("1", "", "tool Bash mkfifo allowed"))
	s.wantAnswer("1", "The tool said: (Bash completed with no output)")
	s.send(message("2", "tool Bash mkfifo denied"))
	if f := s.next(); !strings.Contains(f.Result, "The tool failed: There are no permission prompts here.") ||
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
	// The tool is allowed, and only the path is not.
	if f := s.next(); !strings.Contains(f.Result, "this path is outside your working folder") || strings.Contains(f.Result, "CLAUDE_ALLOWED_TOOLS") {
		t.Errorf("got %+v", f)
	}
	s.send(message("5", `tool AskUserQuestion {"questions":[]}`))
	if f := s.next(); !strings.HasPrefix(f.Result, "The tool failed:") {
		t.Errorf("got %+v", f)
	}
	s.wantExit(0)
	for path, want := range map[string]bool{filepath.Join(r.group, "allowed"): true, filepath.Join(r.group, "denied"): false, file: true, outside: false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAgent_BypassPermissionsAsRoot_IsRefused(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.open("CLAUDE_PERMISSION_MODE=bypassPermissions", "IS_SANDBOX=1")
	s.send(first("1", "", "tool Bash touch file"))
	s.wantAnswer("1", "The tool said: (Bash completed with no output)")
	s.wantExit(0)
	if os.Geteuid() == 0 {
		s = r.open("CLAUDE_PERMISSION_MODE=bypassPermissions")
		s.send(first("1", "", "say hello"))
		s.wantError("1", agentproto.KindPermanent, "refuses CLAUDE_PERMISSION_MODE=bypassPermissions as root")
		s.wantExit(1)
	}
}

const mcpToken = "token-of-the-tools-0001"

// tools is an MCP server with one tool, for clients with the token.
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

func TestAgent_MCPTools_CalledWithoutLeakingToken(t *testing.T) {
	t.Parallel()
	called := make(chan string, 1)
	s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash", "CLAUDE_CODE_MAX_RETRIES=0")
	start := first("1", "", `tool mcp__arizuko__send_message {"text":"hi"}`)
	start.MCP = tools(t, called)
	s.send(start)
	s.wantAnswer("1", "The tool said: sent")
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
	s.wantExit(0)
}

func TestAgent_UnreachableMCPTools_WorksWithoutThem(t *testing.T) {
	t.Parallel()
	s := newFixture(t).open()
	start := first("1", "", "say hello")
	start.MCP = &agentproto.MCP{URL: "http://127.0.0.1:1/mcp", Token: mcpToken}
	s.send(start)
	s.wantAnswer("1", "hello")
	s.wantExit(0)
	if !strings.Contains(s.log.String(), "tools of arizuko: failed") {
		t.Error("the failure is not logged")
	}
}

func TestAgent_OddTexts_AreAnswered(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.model.SetModel(func(in anthropic.Request) anthropic.Reply {
		if in.Commands()[len(in.Commands())-1] == "much" {
			return anthropic.Reply{Text: strings.Repeat("\x01é", agentproto.MaxResult)}
		}
		var content anthropic.Content
		for _, m := range in.Messages {
			if m.Role == "user" {
				content = m.Content
			}
		}
		return anthropic.Reply{Text: "<" + content[len(content)-1].Text + ">"}
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
			if !strings.HasSuffix(f.Result, " KiB.)") {
				t.Errorf("an answer of %d bytes", len(f.Result))
			}
		}
	}
	s.wantExit(0)
}
