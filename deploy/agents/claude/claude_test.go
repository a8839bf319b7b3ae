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
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/need"
)

// These tests run the real Claude Code with a fake model that follows instructions.

func TestAgent_NextRun_ResumesSession(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.open("CLAUDE_MODEL=claude-fake-1")
	s.Send(agenttest.First("1", "", "say hello"))
	f := s.WantAnswer("1", "hello")
	if c, ok := readConversation(f.NewSessionID); !ok || c.message == "" {
		t.Errorf("session %q", f.NewSessionID)
	}
	s.Send(agenttest.Further("2", "recall"))
	f = s.WantAnswer("2", "Before: say hello")
	s.WantExit(0)
	if model := r.model.MessageCalls()[0].Request.Model; model != "claude-fake-1" {
		t.Errorf("model %q", model)
	}

	again := r.open("AGENT_MODEL=claude-fake-2")
	again.Send(agenttest.First("3", f.NewSessionID, "recall"))
	g := again.WantAnswer("3", "Before: say hello\nrecall")
	wantSameConversation(t, f.NewSessionID, g.NewSessionID)
	again.WantExit(0)
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

// The CLI names the folder of a project's sessions after the working folder, and finds
// a session by its id in every one of them. Its memory is only in that of its project.
func TestAgent_FolderMoved_SessionGoesOn(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	r := newFixture(t)
	groups := r.group
	r.group = filepath.Join(groups, "acme", "eng")
	if err := os.MkdirAll(r.group, 0o700); err != nil {
		t.Fatal(err)
	}
	s := r.open()
	s.Send(agenttest.First("1", "", "say hello"))
	id := s.WantAnswer("1", "hello").NewSessionID
	s.WantExit(0)
	for _, name := range []string{"acme+eng", "elsewhere", strings.Repeat("long", 60)} {
		to := filepath.Join(groups, name)
		if err := os.Rename(r.group, to); err != nil {
			t.Fatal(err)
		}
		r.group, r.home = to, t.TempDir()
		s = r.open()
		s.Send(agenttest.First("2", id, "recall"))
		f := s.Next()
		if f.Status != agentproto.StatusOK || !strings.HasPrefix(f.Result, "Before: say hello") {
			t.Errorf("in %s: %+v", name, f)
		}
		wantSameConversation(t, id, f.NewSessionID)
		id = f.NewSessionID
		s.WantExit(0)
		if name == "acme+eng" {
			if projects, err := filepath.Glob(filepath.Join(r.group, ".claude/projects/*")); len(projects) != 1 || err != nil {
				t.Errorf("projects %v, %v: its memory is in one of them", projects, err)
			}
		}
	}
}

// Groups that share a home do not share sessions.
func TestAgent_SessionOfOtherGroup_IsUnknown(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	r := newFixture(t)
	s := r.open()
	s.Send(agenttest.First("1", "", "say hello"))
	id := s.WantAnswer("1", "hello").NewSessionID
	s.WantExit(0)
	if left, _ := os.ReadDir(r.home); len(left) != 0 {
		t.Errorf("files in the home: %v", left)
	}
	info, err := os.Stat(filepath.Join(r.group, ".claude"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}

	r.group = t.TempDir()
	s = r.open()
	s.Send(agenttest.First("2", id, "recall"))
	s.WantError("2", agentproto.KindSession, "No conversation found")
	s.WantExit(1)
}

func TestAgent_Interrupt_DropsOpenTurns(t *testing.T) {
	t.Parallel()
	t.Run("then end of input", func(t *testing.T) {
		s := newFixture(t).open()
		s.begin("slow 600 say never")
		s.Send(agenttest.Further("2", "say nor this"), agentproto.Interrupt{})
		begun := time.Now()
		s.WantExit(0)
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("the end took %v", took)
		}
		if n := len(s.model.MessageCalls()); n != 1 {
			t.Errorf("%d calls of the model, want 1", n)
		}
	})
	t.Run("then another turn", func(t *testing.T) {
		s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash")
		s.Send(agentproto.Interrupt{}, agenttest.First("1", "", "tool Bash sleep 600"))
		s.waitCall("tool Bash sleep 600")
		s.Send(agentproto.Interrupt{}, agentproto.Interrupt{}, agenttest.Further("2", "slow 600 say never"))
		s.waitCall("slow 600 say never")
		s.Send(agentproto.Interrupt{}, agenttest.Further("3", "say after"))
		s.WantAnswer("3", "after")
		s.Send(agentproto.Interrupt{})
		s.WantExit(0)
	})
}

func TestAgent_EndOfInput_AnswersOpenTurns(t *testing.T) {
	t.Parallel()
	s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *)")
	s.Send(agenttest.First("1", "", "tool Bash sleep 1"), agenttest.Further("2", "tool Bash mkfifo denied"), agenttest.Further("3", "say three"))
	rest, code := s.End()
	if len(rest) != 3 || code != 0 || rest[2].Result != "three" || !strings.Contains(rest[1].Result, "an operator may allow it") {
		t.Errorf("exit code %d, frames %+v", code, rest)
	}
	t.Run("without a turn", func(t *testing.T) { newFixture(t).open().WantExit(0) })
	t.Run("invalid line", func(t *testing.T) {
		s := newFixture(t).open()
		s.Send(agenttest.First("1", "", "slow 1 say hello"))
		if _, err := s.Stdin.Write([]byte("nonsense\n")); err != nil {
			t.Fatal(err)
		}
		s.WantAnswer("1", "hello")
		s.WantExit(1)
	})
}

// Commands run in separate sessions and must end with the run.
func TestAgent_EndOfRun_LeavesNoProcess(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	for name, end := range map[string]func(*session){
		"terminated": func(s *session) {
			kill(s.t, s.Cmd.Process.Pid, syscall.SIGTERM)
			s.WantError("1", agentproto.KindTransient, "was terminated")
		},
		"crashed": func(s *session) {
			kill(s.t, s.cliPID(), syscall.SIGKILL)
			s.WantError("1", agentproto.KindTransient, "signal: killed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash")
			running := filepath.Join(s.group, "running")
			if err := syscall.Mkfifo(running, 0o600); err != nil {
				t.Fatal(err)
			}
			s.Send(agenttest.First("1", "", "tool Bash echo > running; exec sleep 600"))
			if _, err := os.ReadFile(running); err != nil { // waits for the command
				t.Fatal(err)
			}
			all := descendants(t, s.Cmd.Process.Pid)
			if len(all) < 2 {
				t.Fatalf("processes of Claude Code and the command: %v", all)
			}
			end(s)
			s.WantExit(1)
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
	s := r.open("CLAUDE_ALLOWED_TOOLS=Bash(mkfifo allowed)", "CLAUDE_PERMISSIONS=deny")
	s.Send(agenttest.First("1", "", "tool Bash mkfifo allowed"))
	s.WantAnswer("1", "The tool said: (Bash completed with no output)")
	s.Send(agenttest.Further("2", "tool Bash mkfifo denied"))
	if f := s.Next(); !strings.Contains(f.Result, "The tool failed: There are no permission prompts here.") ||
		!strings.Contains(f.Result, "adding Bash to CLAUDE_ALLOWED_TOOLS") {
		t.Errorf("got %+v", f)
	}
	file := filepath.Join(r.group, "notes.txt")
	s.Send(agenttest.Further("3", `tool Write {"file_path":"`+file+`","content":"x"}`))
	if f := s.Next(); !strings.HasPrefix(f.Result, "The tool said: File created") {
		t.Errorf("got %+v", f)
	}
	outside := filepath.Join(r.home, "notes.txt")
	s.Send(agenttest.Further("4", `tool Write {"file_path":"`+outside+`","content":"x"}`))
	// The tool is allowed, and only the path is not.
	if f := s.Next(); !strings.Contains(f.Result, "this path is outside your working folder") || strings.Contains(f.Result, "CLAUDE_ALLOWED_TOOLS") {
		t.Errorf("got %+v", f)
	}
	s.Send(agenttest.Further("5", `tool AskUserQuestion {"questions":[]}`))
	if f := s.Next(); !strings.HasPrefix(f.Result, "The tool failed:") {
		t.Errorf("got %+v", f)
	}
	s.WantExit(0)
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
	s.Send(agenttest.First("1", "", "tool Bash touch file"))
	s.WantAnswer("1", "The tool said: (Bash completed with no output)")
	s.WantExit(0)
	if os.Geteuid() == 0 {
		s = r.open("CLAUDE_PERMISSION_MODE=bypassPermissions")
		s.Send(agenttest.First("1", "", "say hello"))
		s.WantError("1", agentproto.KindPermanent, "refuses CLAUDE_PERMISSION_MODE=bypassPermissions as root")
		s.WantExit(1)
	}
}

const mcpToken = "token-of-the-tools-0001"

// tools is an MCP server with one tool, for clients with the token.
func tools(t *testing.T, called chan<- string) *agentproto.MCP {
	t.Helper()
	return slowTools(t, called, 0)
}

// slowTools is tools, whose answer takes a time, and is kept alive meanwhile as gated keeps it alive: by white space.
func slowTools(t *testing.T, called chan<- string, wait time.Duration) *agentproto.MCP {
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
			keptAlive(w, r, wait)
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

// keptAlive writes white space until a time has passed, or the client is gone.
func keptAlive(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	if wait == 0 {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	done := time.After(wait)
	for {
		_, _ = w.Write([]byte("\n"))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(min(wait/8, 20*time.Second)):
		case <-r.Context().Done():
			return
		case <-done:
			return
		}
	}
}

func TestAgent_MCPTools_CalledWithoutLeakingToken(t *testing.T) {
	t.Parallel()
	called := make(chan string, 1)
	s := newFixture(t).open("CLAUDE_ALLOWED_TOOLS=Bash", "CLAUDE_CODE_MAX_RETRIES=0")
	start := agenttest.First("1", "", `tool mcp__arizuko__send_message {"text":"hi"}`)
	start.MCP = tools(t, called)
	s.Send(start)
	s.WantAnswer("1", "The tool said: sent")
	if got := <-called; got != "hi" {
		t.Errorf("called with %q", got)
	}
	for _, name := range []string{"cmdline", "environ"} {
		content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cliPID()), name))
		if err != nil || strings.Contains(string(content), mcpToken) {
			t.Errorf("%s: %v, %q", name, err, content)
		}
	}
	s.Send(agenttest.Further("2", "tool Bash env"))
	if f := s.Next(); !strings.Contains(f.Result, "ANTHROPIC_API_KEY=[redacted]") || strings.Contains(f.Result, "MCP_TOKEN") {
		t.Errorf("got %+v", f)
	}
	s.WantExit(0)
}

func TestAgent_UnreachableMCPTools_WorksWithoutThem(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	s := newFixture(t).open()
	start := agenttest.First("1", "", "say hello")
	start.MCP = &agentproto.MCP{URL: "http://127.0.0.1:1/mcp", Token: mcpToken}
	s.Send(start)
	s.WantAnswer("1", "hello")
	s.WantExit(0)
	if !strings.Contains(s.Log.String(), "tools of arizuko: failed") {
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
	s.Send(agentproto.Start{TurnID: "1", Prompt: "/clear"}, agentproto.Message{TurnID: "2", Prompt: "\x00\x1b\u2028\"\\\r\n\xff end"},
		agentproto.Message{TurnID: "3", Prompt: strings.Repeat("word ", 20_000) + "end"}, agenttest.Further("4", "much"), agentproto.Message{TurnID: "5"})
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		f := s.Next()
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
	s.WantExit(0)
}
