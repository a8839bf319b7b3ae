//go:build realagents

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/llm"
	"arizuko/pkg/testkit/gobuild"
)

// TestReal_Gemini_Conforms runs the real Gemini CLI, in the version that the agent acp pins, with a fake model: `make acp`.
func TestReal_Gemini_Conforms(t *testing.T) {
	modules, err := filepath.Abs("../acp/node_modules/.bin")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "gemini"))
	}
	if err != nil {
		t.Fatalf("%v: install it with `npm ci --prefix deploy/agents/acp`", err)
	}
	bin := t.TempDir()
	if err := gobuild.Programs(bin, gobuild.Options{}, "arizuko/gated", "arizuko/deploy/agents/oneshot", "arizuko/deploy/agents/agentcheck"); err != nil {
		t.Fatal(err)
	}
	model := llm.New()
	base, err := model.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	home := t.TempDir()
	err = os.Mkdir(filepath.Join(home, ".gemini"), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, ".gemini", "settings.json"), []byte(`{"security":{"auth":{"selectedType":"gemini-api-key"}}}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "gated"), "agent", "conform", "-wait", "90s", "-grace", "10s", "--",
		"exec "+filepath.Join(bin, "oneshot")+" "+filepath.Join(modules, "gemini")+" --model=gemini-2.5-flash")
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + modules + ":" + os.Getenv("PATH"), "GEMINI_API_KEY=" + llm.Key, "GOOGLE_GEMINI_BASE_URL=" + base,
		"AGENT_ENV=GEMINI_API_KEY,GOOGLE_GEMINI_BASE_URL",
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	for _, c := range []string{"a first answer", "a session is taken up again", "a session that is gone", "interrupt, then another turn"} {
		if !strings.Contains(string(out), "ok         "+c) {
			t.Errorf("not passed: %s", c)
		}
	}
}
