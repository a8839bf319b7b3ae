package agents

import (
	"fmt"
	"net/http"
	"testing"

	"arizuko/gated/internal/tools"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// withTools gives agents access to tools.
func withTools(tokens *tools.Tokens) func(*Config) {
	return func(cfg *Config) {
		cfg.Tools = func(run msg.Run, redact func(string) string) Access { return tokens.Issue(run, redact) }
		cfg.ToolsURL = func(groupconfig.Runtime) string { return "http://127.0.0.1:1/mcp" }
	}
}

// valid reports whether a token is that of a live run.
func valid(t *testing.T, tokens *tools.Tokens, access *agentproto.MCP) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, access.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+access.Token)
	return tokens.Find(r) != nil
}

// A turn's answer, and its text so far, do not show the token that the agent was given.
func TestTools_Token_IsRedactedInAnswers(t *testing.T) {
	t.Parallel()
	r := newHarness(t, withTools(&tools.Tokens{}))
	r.configure("own", fmt.Sprintf(`{"agent":{"command":%q}}`,
		`read -r start; token=$(printf %s "$start" | sed 's/.*"token":"\([^"]*\)".*/\1/'); `+
			fmt.Sprintf(`printf '%%s\n' '%s' "{\"status\":\"ok\",\"result\":\"my token is ${token}, of ${#token} characters\"}" '%s'`, agentproto.FrameStart, agentproto.FrameEnd)))
	diff(t, "answer", r.answered(r.ask("hello", group("own"))), []string{"my token is [redacted], of 43 characters"})
}

func TestTools_Token_DiesWithItsRun(t *testing.T) {
	t.Parallel()
	tests := map[string]func(r *harness, asked *msg.Turn){
		"a /stop":           func(r *harness, _ *msg.Turn) { r.cancelChat("telegram:1") },
		"a cancelled turn":  func(r *harness, asked *msg.Turn) { r.cancel(asked) },
		"the end of gated":  func(r *harness, _ *msg.Turn) { r.stop() },
		"a crash":           nil,
		"an error frame":    nil,
		"a drained session": func(r *harness, _ *msg.Turn) { r.reset("main", "") },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tokens := &tools.Tokens{}
			r := newHarness(t, withTools(tokens), impatient, attempts(1))
			ready, open := r.gate("main", "ready"), r.gate("main", "gate")
			then := map[string]string{"a crash": "exit 3", "an error frame": "error no"}[name]
			if then == "" {
				then = "say done"
			}
			asked := r.ask("!hold ready; hold gate; " + then)
			ready()
			access := r.inputs("main")[0].start().MCP
			if access == nil || !valid(t, tokens, access) {
				t.Fatalf("access %+v is not valid", access)
			}
			if end != nil {
				end(r, asked)
			}
			if name == "a drained session" && !valid(t, tokens, access) {
				t.Error("a drained run cannot finish its turn")
			}
			if end == nil || name == "a drained session" {
				open()
			}
			r.until("the token is invalid", func() bool { return !valid(t, tokens, access) })
		})
	}
}

func TestTools_EachRun_HasItsOwnToken(t *testing.T) {
	t.Parallel()
	tokens := &tools.Tokens{}
	r := newHarness(t, withTools(tokens))
	r.answered(r.ask("one"))
	r.answered(r.ask("two", group("other")))
	first, second := r.inputs("main")[0].start().MCP, r.inputs("other")[0].start().MCP
	if first.Token == second.Token || len(first.Token) < 40 {
		t.Errorf("tokens %q, %q", first.Token, second.Token)
	}
}
