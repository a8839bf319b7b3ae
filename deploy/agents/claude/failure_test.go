package main

import (
	"os/exec"
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
)

func TestResultFailure_EachFailure_HasKindAndHelpsOperator(t *testing.T) {
	tests := []struct {
		line line
		name string
		kind agentproto.Kind
		want string
	}{
		{line{APIStatus: 401}, "", "permanent", "check ANTHROPIC_API_KEY"},
		{line{APIStatus: 403}, "", "permanent", "check ANTHROPIC_API_KEY"},
		{line{APIStatus: 402}, "", "permanent", "no credit"},
		{line{APIStatus: 400}, "billing_error", "permanent", "no credit"},
		{line{APIStatus: 404}, "", "permanent", "CLAUDE_MODEL"},
		{line{}, "model_not_found", "permanent", "CLAUDE_MODEL"},
		{line{APIStatus: 413}, "", "permanent", "too large"},
		{line{APIStatus: 408}, "", "transient", "Claude Code failed"},
		{line{APIStatus: 429}, "rate_limit", "transient", "rate limit"},
		{line{APIStatus: 529}, "server_error", "transient", "overloaded"},
		{line{APIStatus: 502}, "", "transient", "failing (502)"},
		{line{Result: "API Error: Connection dropped"}, "server_error", "transient", "Connection dropped"},
		{line{Result: "Not logged in · Please run /login"}, "authentication_failed", "permanent", "no credentials"},
		{line{Result: "Prompt is too long", APIStatus: 400}, "", "permanent", "too long for the model"},
		{line{Result: "odd", TerminalReason: "prompt_too_long"}, "", "permanent", "too long for the model"},
		{line{Result: "API Error: 400 odd", APIStatus: 400}, "", "permanent", "API Error: 400 odd"},
		{line{Errors: []string{"a", "b"}}, "", "transient", "Claude Code failed: a; b"},
		{line{Subtype: "error_max_turns"}, "", "permanent", "Claude Code failed: error_max_turns"},
		{line{Result: `{"type":"error"}`}, "", "transient", "no error was printed"},
		{line{Result: "one\ntwo"}, "", "transient", "Claude Code failed: one"},
	}
	for _, tt := range tests {
		got := resultFailure(tt.line, tt.name)
		if got.Kind != tt.kind || !strings.Contains(got.Text, tt.want) || strings.ContainsAny(got.Text, "\n{") {
			t.Errorf("%+v: %+v, want %s, %q", tt.line, got, tt.kind, tt.want)
		}
	}
}

func TestExitFailure_OnlyLoadingSession_LosesIt(t *testing.T) {
	killed := exec.Command("sh", "-c", "kill -KILL $$").Run()
	code := exec.Command("sh", "-c", "exit 1").Run()
	for _, tt := range []struct {
		err     error
		stderr  string
		loading bool
		kind    agentproto.Kind
	}{
		{killed, "", false, "transient"},
		{killed, "", true, "transient"},
		{code, "TypeError: undefined", false, "transient"},
		{code, "TypeError: undefined", true, "session"},
		{code, "ENOSPC: no space left on device, write", true, "transient"},
		{code, "error: unknown option '--nonsense'", true, "permanent"},
		{code, "--dangerously-skip-permissions cannot be used with root", false, "permanent"},
	} {
		how := tt.err.Error() + ": " + tt.stderr
		if got := exitFailure(tt.err, how, tt.loading); got.Kind != tt.kind {
			t.Errorf("%s, loading %v: %+v, want %s", how, tt.loading, got, tt.kind)
		}
	}
}

func TestUUID(t *testing.T) {
	if a, b := newUUID(), newUUID(); !isUUID(a) || a == b || a[14] != '4' {
		t.Errorf("%s, %s", a, b)
	}
	for _, bad := range []string{"", "demo-1", "--version", newUUID() + "0", "x" + newUUID()[1:]} {
		if isUUID(bad) {
			t.Errorf("%q", bad)
		}
	}
}
