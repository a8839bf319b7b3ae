// Package agents holds the agents that come with arizuko to the protocol, by the tool that others
// hold theirs to it with.
package agents

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/anthropic"
)

// limit is for one agent on a busy machine; none takes a fifth of it otherwise.
const limit = 4 * time.Minute

// build makes the programs and returns their folder.
func build(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"build", "-o", dir + "/"}, packages...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return dir
}

// conform runs `gated agent conform` and returns the verdict on each case.
func conform(t *testing.T, bin, command string, env ...string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "gated"), "agent", "conform", "-grace", "15s", "--", command)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	verdicts := map[string]string{}
	for line := range strings.Lines(string(out)) {
		for _, verdict := range []string{"ok", "not shown"} {
			if name, is := strings.CutPrefix(line, verdict+" "); is {
				name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
				verdicts[name] = verdict
			}
		}
	}
	return verdicts
}

// notShown checks which cases an agent cannot be brought to show.
func notShown(t *testing.T, verdicts map[string]string, want ...string) {
	t.Helper()
	const cases = 18
	if len(verdicts) != cases {
		t.Errorf("verdicts on %d cases, want %d: %v", len(verdicts), cases, verdicts)
	}
	for _, name := range want {
		if verdicts[name] != "not shown" {
			t.Errorf("%s: %q, want it not shown", name, verdicts[name])
		}
		delete(verdicts, name)
	}
	for name, verdict := range verdicts {
		if verdict != "ok" {
			t.Errorf("%s: %s", name, verdict)
		}
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	bin := build(t, "arizuko/gated", "arizuko/deploy/agents/demo")
	notShown(t, conform(t, bin, "exec "+bin+"/demo"), "a line it does not know")
}

// It runs the real Claude Code in front of a model that does what it is told.
func TestClaude(t *testing.T) {
	t.Parallel()
	cli := os.Getenv("CLAUDE_CLI")
	if cli == "" {
		cli = "claude/node_modules/.bin/claude"
	}
	cli, err := filepath.Abs(cli)
	if err == nil {
		_, err = os.Stat(cli)
	}
	if err != nil {
		t.Fatalf("%v: install it with `npm ci --prefix deploy/agents/claude`, or name one in CLAUDE_CLI", err)
	}
	model := anthropic.New(anthropic.Options{})
	base, err := model.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	bin := build(t, "arizuko/gated", "arizuko/deploy/agents/claude")
	verdicts := conform(t, bin, "exec "+bin+"/claude", "AGENT_ENV=ANTHROPIC_API_KEY,ANTHROPIC_BASE_URL,CLAUDE_COMMAND",
		"ANTHROPIC_API_KEY="+model.Key(), "ANTHROPIC_BASE_URL="+base, "CLAUDE_COMMAND="+cli)
	notShown(t, verdicts, "several frames", "silence", "an error", "a line it does not know")
}

func TestOneshot(t *testing.T) {
	t.Parallel()
	bin := build(t, "arizuko/gated", "arizuko/deploy/agents/oneshot")
	verdicts := conform(t, bin, "exec "+bin+"/oneshot sh -c 'if grep -q slow; then sleep 3; fi; echo hello'")
	notShown(t, verdicts, "a session is taken up again", "several frames", "silence", "an error")
}
