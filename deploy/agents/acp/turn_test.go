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
	s = g.open() // earlier costs of the session are not counted
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

// Whatever an agent does and says, its turn ends with one clear result, and soon. No word of it is in another turn.
func TestTurn_Order_HasOneClearResult(t *testing.T) {
	const limited = "half of it\n\n(The answer ends here: it has reached the model's limit of length.)"
	for _, tt := range []struct {
		order, faults string
		result        string          // the answer, or the part of it with a failure
		kind          agentproto.Kind // of the failure, "" for none
		want          string          // in its text
	}{
		{order: "say <internal>nothing to say</internal>", result: "<internal>nothing to say</internal>"}, // a silence
		{order: "segment and last", result: "first and last"},                                             // in one piece with the response
		{order: "late and last", result: "first and last"},                                                // after the response
		{order: "say hello", faults: "early", result: "hello"},                                            // before the session is named
		{order: "say café, é", faults: "split", result: "café, é"},                                        // a character in two pieces
		{order: "big 5000000", result: strings.Repeat("é", 5000000)},                                      // a line of 10 MB
		{order: "many 200000", result: strings.Repeat("words", 200000)},                                   // many small ones
		{order: "loud", result: "quiet now"},                                                              // stderr without end
		{order: "hostile texts", result: "fine"},
		{order: "hostile decimal id", result: "fine"},
		{order: "hostile many calls", result: strings.Repeat(".\n\n", 9999) + strings.Repeat(".", 12000-9999)},
		{order: "stop a_new_reason words", result: "words"},

		{order: "empty", kind: "transient", want: "ended the turn without an answer"},
		{order: "gone", kind: "transient", want: "exited during a turn: unexpected exit"}, // with exit code 0
		{order: "stop max_tokens half of it", result: limited, kind: "permanent", want: "limit of tokens"},
		{order: "stop max_tokens", kind: "permanent", want: "limit of tokens"},
		{order: "stop max_turn_requests half", result: "half\n\n(I have stopped here: this took more steps than I may take in one turn.)",
			kind: "permanent", want: "limit of requests"},
		{order: "stop refusal", kind: "permanent", want: "refused"},
		{order: "stop cancelled half of it", kind: "transient", want: "cancelled the turn by itself"},
		{order: "stop a_new_reason", kind: "transient", want: "ended the turn without an answer (a_new_reason)"},
		{order: "exit", kind: "transient", want: "exited during a turn: exit status 3: exiting as ordered"},
		{order: "error -32603 Internal error: 529 overloaded", kind: "transient", want: "529 overloaded: of the fake"},
		{order: "error -32603 API Error: 401 Unauthorized", kind: "permanent", want: "401"},
		{order: "error -32603 rate limited, retry after 20 seconds", kind: "transient", want: "rate limited"},
		{order: "error -32000 Please log in", kind: "permanent", want: "name the variable in AGENT_ENV"},
		{order: "error -32002 gone", kind: "session", want: "gone"},
		{order: "half -32002 a file is gone", kind: "transient", want: "a file is gone"}, // another session would get the prompt once more
		{order: "huge", kind: "transient", want: "token too long"},
		{order: "hostile nameless error", kind: "transient", want: "Parse error"},
		{order: "hostile error without id", kind: "transient", want: "Invalid Request"},
		{order: "hostile deaf", kind: "transient", want: "it did not read its stdin"},
		{order: "hostile child", kind: "transient", want: "exited during a turn: exit status 3"},
	} {
		t.Run(tt.order, func(t *testing.T) {
			t.Parallel()
			s := fake(t, strings.Fields(tt.faults)...).open()
			s.Send(agenttest.First("1", "", tt.order))
			if tt.kind == "" {
				s.Send(agenttest.Further("2", "say more"))
				s.WantAnswer("1", agentproto.Cut(tt.result, agentproto.MaxResult))
				s.WantAnswer("2", "more")
				s.wantExit(0)
				return
			}
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

func TestTurn_StartFailures_SayWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults []string
		env    []string
		kind   agentproto.Kind
		want   string
	}{
		{"no initialize", []string{"mute=initialize"}, []string{"ACP_START_TIMEOUT=300ms"}, "transient", "has not answered initialize within 300ms: see that its command speaks"},
		// Longer: this one starts and answers before, which a busy machine makes slow.
		{"no session", []string{"mute=session/new"}, []string{"ACP_START_TIMEOUT=5s"}, "transient", "has not answered session/new within 5s"},
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

// The operator reads how the program behaved, and how to fix that.
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
			if pipe == "stdin" { // the next request is lost
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

// The key is that of the environment, not one that Codex has stored. Other logins it may store.
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
