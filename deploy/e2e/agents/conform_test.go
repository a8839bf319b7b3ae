// Package agents runs the protocol conformance tool on the bundled agents.
package agents

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/need"
)

// maxConform is how long one agent may take on a busy machine; usually it takes a fifth.
const maxConform = 4 * time.Minute

// parallel is how many agents run at once.
const parallel = "3"

var programs = harness.NewPrograms("", "arizuko/gated", "arizuko/deploy/agents/demo", "arizuko/deploy/agents/claude",
	"arizuko/deploy/agents/acp", "arizuko/pkg/testkit/fakes/cmd/fakeagent", "arizuko/deploy/agents/oneshot",
	"arizuko/deploy/agents/agentcheck")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, parallel)) }

// program is the path of a built program.
func program(t *testing.T, name string) string {
	t.Helper()
	bin, err := programs.Bin()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, name)
}

// conform runs `gated agent conform` and returns the result of each case.
func conform(t *testing.T, command string, env ...string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxConform)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, "gated"), "agent", "conform", "-grace", "15s", "--", command)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	results := map[string]string{}
	for line := range strings.Lines(string(out)) {
		for _, result := range []string{"ok", "not shown"} {
			if name, is := strings.CutPrefix(line, result+" "); is {
				name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
				results[name] = result
			}
		}
	}
	return results
}

// wantNotShown fails the test unless exactly these cases are not shown and all others are ok.
func wantNotShown(t *testing.T, results map[string]string, want ...string) {
	t.Helper()
	const cases = 24
	if len(results) != cases {
		t.Errorf("results of %d cases, want %d: %v", len(results), cases, results)
	}
	for _, name := range want {
		if results[name] != "not shown" {
			t.Errorf("%s: %q, want not shown", name, results[name])
		}
		delete(results, name)
	}
	for name, result := range results {
		if result != "ok" {
			t.Errorf("%s: %s", name, result)
		}
	}
}

// Gated passes on only the variables of AGENT_ENV, and hides their secrets in the output.
func TestTry_AgentPrintsItsEnvironment_SecretsAreHidden(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), program(t, "gated"), "agent", "try", "--", "read line; env >&2")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AGENT_ENV=SOME_API_KEY", "SOME_API_KEY=hunter2-hunter2", "OTHER=x"}
	cmd.Stdin = strings.NewReader("hello\n")
	out, err := cmd.CombinedOutput()
	text := string(out)
	if cmd.ProcessState.ExitCode() != 1 || !strings.HasSuffix(text, "\ngated: breaches of the protocol: 1\n") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(text, "| err: SOME_API_KEY=[redacted]\n") || strings.Contains(text, "hunter2") ||
		strings.Contains(text, "OTHER") || strings.Contains(text, "SECRETS_FD") {
		t.Errorf("got\n%s", text)
	}
}

func TestConform_Demo(t *testing.T) {
	t.Parallel()
	wantNotShown(t, conform(t, "exec "+program(t, "demo")))
}

// claudeCode is the real CLI.
func claudeCode(t *testing.T) string {
	t.Helper()
	cli := os.Getenv("CLAUDE_CLI")
	if cli == "" {
		cli = "../../agents/claude/node_modules/.bin/claude"
	}
	cli, err := filepath.Abs(cli)
	if err == nil {
		_, err = os.Stat(cli)
	}
	if err != nil {
		t.Fatalf("%v: install it with `npm ci --prefix deploy/agents/claude`, or name one in CLAUDE_CLI", err)
	}
	return cli
}

// The real Claude Code calls a fake model that follows instructions.
func TestConform_Claude(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	model := anthropic.New(anthropic.Options{})
	base, err := model.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	results := conform(t, "exec "+program(t, "claude"), "AGENT_ENV=ANTHROPIC_API_KEY,ANTHROPIC_BASE_URL,CLAUDE_COMMAND",
		"ANTHROPIC_API_KEY="+model.Key(), "ANTHROPIC_BASE_URL="+base, "CLAUDE_COMMAND="+claudeCode(t))
	wantNotShown(t, results, "a turn folded into the one under way", "a question to the user", "several frames", "many frames", "silence", "an error", "an error that keeps the session")
}

// The fake agent ends with an error if the bridge breaks the Agent Client Protocol.
func TestConform_ACP(t *testing.T) {
	t.Parallel()
	notShown := []string{"several frames", "many frames", "silence", "an error"}
	for faults, more := range map[string][]string{
		"":                                 {"a turn folded into the one under way"},
		"steering system stays slow-start": nil,
		"no-resume late-replay noise no-http completed-only stubborn": {"a turn folded into the one under way"},
	} {
		t.Run(faults, func(t *testing.T) {
			if faults != "" {
				need.Verify(t)
			}
			t.Parallel()
			results := conform(t, "exec "+program(t, "acp")+" "+program(t, "fakeagent")+" "+faults)
			wantNotShown(t, results, append(more, notShown...)...)
		})
	}
}

func TestConform_Oneshot(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	results := conform(t, "exec "+program(t, "oneshot")+" sh -c 'if grep -q slow; then sleep 3; fi; echo hello'")
	wantNotShown(t, results, "a session is taken up again", "a turn folded into the one under way", "a question to the user", "a choice of models", "several frames", "many frames", "events while it works", "silence", "an error", "an error that keeps the session")
}
