package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
)

func TestTurn_Events_SayWhatTheAgentDoes(t *testing.T) {
	t.Parallel()
	g := fake(t, "no-resume")
	s := g.open()
	s.Send(agenttest.First("1", "", "say hello"))
	f := s.WantAnswer("1", "hello")
	s.wantExit(0)
	s = g.open() // what the session has cost before is not counted
	s.Send(agenttest.First("2", f.NewSessionID, "tool look"))
	s.WantAnswer("2", "I look.\n\nIt is done.")
	s.wantExit(0)
	var statuses []agentproto.ToolStatus
	var texts []string
	var last agentproto.Usage
	plans := 0
	for _, e := range s.Events {
		switch {
		case e.Tool != nil:
			if e.Tool.Title != "Run a command" || e.Tool.Kind != "execute" || e.Tool.ID != "t" {
				t.Errorf("%+v", *e.Tool)
			}
			statuses = append(statuses, e.Tool.Status)
		case e.Text != nil:
			texts = append(texts, *e.Text)
		case e.Plan != nil:
			plans++
			if diff := cmp.Diff([]agentproto.Step{{Content: "look", Status: agentproto.StepInProgress}}, e.Plan.Entries); diff != "" {
				t.Error(diff)
			}
		case e.Usage != nil:
			last = *e.Usage
		}
	}
	if want := []agentproto.ToolStatus{"pending", "running", "done"}; !slices.Equal(statuses, want) {
		t.Errorf("statuses %q, want %q", statuses, want)
	}
	if !slices.Contains(texts, "I look.") || strings.Contains(strings.Join(texts, ""), "thought") || plans != 1 {
		t.Errorf("texts %q, %d plans", texts, plans)
	}
	if want := (agentproto.Usage{Input: 15, Output: 7, ContextUsed: 50, ContextSize: 100, CostUSD: 0.25}); last != want {
		t.Errorf("usage %+v, want %+v", last, want)
	}
}

func TestTurn_ToolOnlyCompleted_IsShownAsDone(t *testing.T) {
	s := fake(t, "completed-only").open()
	s.Send(agenttest.First("1", "", "tool look"))
	e := s.Until("tool", func(e agentproto.Event) bool { return e.Tool != nil })
	if *e.Tool != (agentproto.Tool{ID: "t", Title: "Run a command", Kind: "execute", Status: agentproto.ToolDone}) {
		t.Errorf("%+v", *e.Tool)
	}
	s.WantAnswer("1", "I look.\n\nIt is done.")
	s.wantExit(0)
}

func TestTurn_StopReasons(t *testing.T) {
	for _, tt := range []struct {
		order, result string
		kind          agentproto.Kind
		want          string
	}{
		{"empty", "", "transient", "ended the turn without an answer"},
		{"stop max_tokens half of it", "half of it\n\n(The answer ends here: it has reached the model's limit of length.)", "permanent", "limit of tokens"},
		{"stop max_tokens", "", "permanent", "limit of tokens"},
		{"stop max_turn_requests half", "half\n\n(I have stopped here: this took more steps than I may take in one turn.)", "permanent", "limit of requests"},
		{"stop refusal", "", "permanent", "refused"},
		{"stop cancelled half of it", "", "transient", "cancelled the turn by itself"},
		{"exit", "", "transient", "exited during a turn: exit status 3: exiting as ordered"},
		{"error -32603 Internal error: 529 overloaded", "", "transient", "529 overloaded: of the fake"},
		{"error -32603 API Error: 401 Unauthorized", "", "permanent", "401"},
		{"error -32603 rate limited, retry after 20 seconds", "", "transient", "rate limited"},
		{"error -32000 Please log in", "", "permanent", "name the variable in AGENT_ENV"},
		{"error -32002 gone", "", "session", "gone"},
		{"half -32002 a file is gone", "", "transient", "a file is gone"}, // another session would get the prompt once more
		{"huge", "", "transient", "token too long"},
	} {
		t.Run(tt.order, func(t *testing.T) {
			t.Parallel()
			s := fake(t).open()
			s.Send(agenttest.First("1", "", tt.order))
			f := s.WantError("1", tt.kind, tt.want)
			if f.Result != tt.result {
				t.Errorf("result %q, want %q", f.Result, tt.result)
			}
			if strings.Contains(tt.order, "20 seconds") && f.RetryAfter != 20 {
				t.Errorf("retry after %v", f.RetryAfter)
			}
			code := 1
			if tt.result != "" {
				code = 0
			}
			s.wantExit(code)
		})
	}
}

// The session of a first turn that fails may not be stored; later it is named, so that it is kept.
func TestTurn_Failure_NamesStoredSession(t *testing.T) {
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "error -32603 overloaded"))
	if f := s.WantError("1", "transient", "overloaded"); f.NewSessionID != "" {
		t.Errorf("got %+v", f)
	}
	s.wantExit(1)
	s = fake(t).open()
	s.Send(agenttest.First("1", "", "say hello"), agenttest.Further("2", "error -32603 overloaded"))
	one := s.WantAnswer("1", "hello")
	if f := s.WantError("2", "transient", "overloaded"); f.NewSessionID != one.NewSessionID {
		t.Errorf("got %+v", f)
	}
	s.wantExit(1)
}

func TestTurn_HiddenAnswer_IsASilence(t *testing.T) {
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "say <internal>nothing to say</internal>"), agenttest.Further("2", "say more"))
	s.WantAnswer("1", "<internal>nothing to say</internal>")
	s.WantAnswer("2", "more")
	s.wantExit(0)
}

func TestTurn_StartFailures_SayWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults []string
		env    []string
		kind   agentproto.Kind
		want   string
	}{
		{"no initialize", []string{"mute=initialize"}, []string{"ACP_START_TIMEOUT=300ms"}, "transient", "has not answered initialize within 300ms: see that its command speaks"},
		{"no session", []string{"mute=session/new"}, []string{"ACP_START_TIMEOUT=300ms"}, "transient", "has not answered session/new within 300ms"},
		{"version", []string{"version=2"}, nil, "permanent", "speaks version 2 of the Agent Client Protocol"},
		{"no key", []string{"auth"}, nil, "permanent", "ACP_AUTH_METHOD: browser, fake-api-key"},
		{"wrong key", []string{"auth"}, []string{"FAKE_API_KEY=bad-key"}, "permanent", "no valid credentials (Invalid key: of the fake)"},
		{"wrong method", []string{"auth"}, []string{"FAKE_API_KEY=good-key", "ACP_AUTH_METHOD=browser"}, "permanent", "no valid credentials"},
		{"exit", []string{"dies=initialize"}, nil, "transient", "exited before the turn: exit status 1: dying of initialize"},
		{"exit at the session", []string{"dies=session/new"}, nil, "transient", "dying of session/new"},
		{"model", nil, []string{"AGENT_MODEL=huge"}, "permanent", `has no model "huge": it has small, large, broken`},
		{"model refused", nil, []string{"ACP_MODEL=broken"}, "permanent", `refuses the model "broken": this model is not for you`},
		{"mode", nil, []string{"ACP_MODE=yolo"}, "permanent", `has no mode "yolo": it has ask, code`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := fake(t, tt.faults...).open(tt.env...)
			s.Send(agenttest.First("1", "", "say hello"))
			s.WantError("1", tt.kind, tt.want)
			s.wantExit(1)
		})
	}
	for program, want := range map[string]agentproto.Kind{"/nowhere/agent": "permanent", "/etc/passwd": "permanent"} {
		s := (&group{t: t, folder: t.TempDir(), command: []string{program}}).open()
		s.Send(agenttest.First("1", "", "say hello"))
		s.WantError("1", want, "cannot be started")
		s.wantExit(1)
	}
}

// The operator reads what the program did instead, and what to do.
func TestTurn_CommandIsNoAgent_SaysWhatItDid(t *testing.T) {
	for name, tt := range map[string]struct {
		command []string
		want    string
	}{
		"echoes":              {[]string{"cat"}, "cat sends back what it gets"},
		"echoes in capitals":  {[]string{"sed", "-u", "s/init/INIT/"}, "sed sends back what it gets"},
		"prints and exits":    {[]string{"echo", "hello"}, "echo exited with status 0 and did not answer initialize"},
		"exits":               {[]string{"true"}, "true exited with status 0 and did not answer initialize"},
		"another protocol":    {answering(`"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"x"}}`), "sh names no version of the protocol"},
		"knows no initialize": {answering(`"error":{"code":-32601,"message":"Method not found"}`), "sh does not know the method initialize"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (&group{t: t, folder: t.TempDir(), command: tt.command}).open()
			s.Send(agenttest.First("1", "", "say hello"))
			f := s.WantError("1", agentproto.KindPermanent, tt.want)
			if !strings.Contains(f.Error, "acp or --acp") || !strings.Contains(f.Error, "oneshot") {
				t.Errorf("it does not say what to do: %s", f.Error)
			}
			s.wantExit(1)
		})
	}
}

// answering is a command that answers its first request, which has id 1.
func answering(response string) []string {
	return []string{"sh", "-c", `read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":1,` + response + `}'; exec cat >/dev/null`}
}

// An agent that has closed a pipe cannot be talked to: its turn ends as if it had exited.
func TestTurn_AgentClosesPipe_EndsAsByExit(t *testing.T) {
	for pipe, text := range map[string]string{"stdout": "hang up stdout", "stdin": "hang up stdin"} {
		t.Run(pipe, func(t *testing.T) {
			t.Parallel()
			g := fake(t)
			s := g.open()
			s.Send(agenttest.First("1", "", "say hello"), agenttest.Further("2", text))
			first := s.WantAnswer("1", "hello")
			if pipe == "stdin" { // what is lost is the next request
				s.WantAnswer("2", "hung up")
				s.Send(agenttest.Further("3", "recall"))
			}
			turn := map[string]string{"stdout": "2", "stdin": "3"}[pipe]
			s.WantError(turn, agentproto.KindTransient, "fakeagent exited during a turn: it closed its "+pipe+" and went on running")
			s.wantExit(1)
			s = g.open()
			s.Send(agenttest.First(turn, first.NewSessionID, "recall"))
			if f := s.Next(); !strings.HasPrefix(f.Result, "Before: say hello") {
				t.Errorf("got %+v", f)
			}
			s.wantExit(0)
		})
	}
}

func TestTurn_KeyInEnvironment_Authenticates(t *testing.T) {
	s := fake(t, "auth").open("FAKE_API_KEY=good-key")
	s.Send(agenttest.First("1", "", "say my key is good-key"))
	s.WantAnswer("1", "my key is [redacted]")
	s.wantExit(0)
}

func TestTurn_ModelAndMode_AreSetAndSaid(t *testing.T) {
	for _, faults := range [][]string{nil, {"models=set"}} {
		s := fake(t, faults...).open("AGENT_MODEL=small", "ACP_MODEL=small", "ACP_MODE=code")
		in := agenttest.First("1", "", "setup")
		in.Model = "large"
		s.Send(in)
		e := s.Until("models", func(e agentproto.Event) bool { return e.Models != nil })
		want := agentproto.Models{Current: "large", Models: []agentproto.Model{{ID: "small", Name: "SMALL"}, {ID: "large", Name: "LARGE"}, {ID: "broken", Name: "BROKEN"}}}
		if diff := cmp.Diff(want, *e.Models); diff != "" {
			t.Errorf("%v: %s", faults, diff)
		}
		if f := s.Next(); !strings.Contains(f.Result, "model large mode code") {
			t.Errorf("%v: %+v", faults, f)
		}
		s.wantExit(0)
	}
}

func TestTurn_Tools_AreHandedOver(t *testing.T) {
	for _, tt := range []struct{ faults, want string }{
		{"", `tools ["http arizuko http://127.0.0.1:1/mcp"]`},
		{"no-http", `tools [" arizuko ` + bridge + `"]`},
	} {
		in := agenttest.First("1", "", "setup")
		in.MCP = &agentproto.MCP{URL: "http://127.0.0.1:1/mcp", Token: "secret-token"}
		s := fake(t, tt.faults).open()
		s.Send(in)
		if f := s.Next(); !strings.HasPrefix(f.Result, tt.want) {
			t.Errorf("got %q, want %q", f.Result, tt.want)
		}
		s.wantExit(0)
		if strings.Contains(s.Log.String(), "secret-token") {
			t.Error("the token is in the log")
		}
	}
}

// fakeCodex is a group with the fake agent, called like Codex.
func fakeCodex(t *testing.T) *group {
	t.Helper()
	g := fake(t)
	g.command = []string{filepath.Join(t.TempDir(), codexProgram)}
	if err := os.Symlink(fakeAgent, g.command[0]); err != nil {
		t.Fatal(err)
	}
	return g
}

// The key is that of the environment, not one that Codex has stored; of other logins it stores what it stores.
func TestTurn_LoginOfCodex_IsKeptOnlyIfItIsNoKey(t *testing.T) {
	for _, tt := range []struct {
		env  []string
		want string
	}{
		{[]string{"OPENAI_API_KEY=key-of-this-run"}, `["-c" "cli_auth_credentials_store=\"ephemeral\""] `},
		{[]string{"CODEX_API_KEY=key-of-this-run", "OPENAI_API_KEY=key-of-this-run"}, `["-c" "cli_auth_credentials_store=\"ephemeral\""] `},
		{[]string{"OPENAI_API_KEY=key-of-this-run", "ACP_AUTH_METHOD=chatgpt"}, `[] `},
		{nil, `[] `},
	} {
		s := fakeCodex(t).open(tt.env...)
		s.Send(agenttest.First("1", "", "arguments"))
		s.WantAnswer("1", strings.TrimSpace(tt.want))
		s.wantExit(0)
	}
}

func TestTurn_ToolsOfCodex_AreInItsConfiguration(t *testing.T) {
	g := fakeCodex(t)
	in := agenttest.First("1", "", "arguments")
	in.MCP = &agentproto.MCP{URL: "http://127.0.0.1:1/mcp", Token: "secret-token"}
	s := g.open("OPENAI_API_KEY=key-of-this-run")
	s.Send(in, agenttest.Further("2", "setup"))
	want := []string{"-c", `cli_auth_credentials_store="ephemeral"`, "-c", `mcp_servers.arizuko={url="http://127.0.0.1:1/mcp",bearer_token_env_var="ARIZUKO_MCP_TOKEN",tool_timeout_sec=90000.0}`}
	s.WantAnswer("1", fmt.Sprintf("%q [redacted]", want))
	if f := s.Next(); !strings.HasPrefix(f.Result, "tools [] ") {
		t.Errorf("got %+v", f)
	}
	s.wantExit(0)
}

func TestMain_Usage(t *testing.T) {
	out, err := exec.Command(bridge).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "usage: acp PROGRAM") {
		t.Errorf("%v: %s", err, out)
	}
}
