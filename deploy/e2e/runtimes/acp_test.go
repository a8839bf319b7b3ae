package runtimes

import (
	"maps"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/need"
)

// bridgeImage is the image of the agent acp with the fake agent.
const bridgeImage = "arizuko-acp:1"

// The agent of the Agent Client Protocol does not exit at the end of its input. In a sandbox it ignores SIGTERM too and leaves a
// process behind, which ends there even when gated has to kill the run.
func TestRuntime_ACP(t *testing.T) {
	need.Verify(t)
	bridge, fake := build(t, "deploy/agents/acp"), build(t, "pkg/testkit/fakes/cmd/fakeagent")
	command := "exec '" + bridge + "' '" + fake + "'"
	t.Run("process", func(t *testing.T) {
		t.Parallel()
		testACP(t, runtime{command: command + " stays", env: []string{readable(bridge, fake)}})
	})
	t.Run("bwrap", func(t *testing.T) {
		t.Parallel()
		need.Program(t, "bwrap", "bubblewrap")
		testACP(t, runtime{command: command + " stubborn", env: []string{"AGENT_SANDBOX=bwrap", "AGENT_NETWORK=none", readable(bridge, fake)}})
	})
	t.Run("docker", func(t *testing.T) {
		t.Parallel()
		e := docker.Start(t)
		files := libraries(t, "/bin/bash")
		maps.Copy(files, map[string]string{"agent": bridge, "fakeagent": fake, "bin/sh": "/bin/bash"})
		e.Import(t, bridgeImage, files)
		testACP(t, runtime{command: "exec /agent /fakeagent stubborn", env: append(e.Environ(), "AGENT_RUNTIME=docker", "AGENT_IMAGE="+bridgeImage, "AGENT_NETWORK=none")})
		if left := strings.Fields(e.Docker(t, "ps", "--all", "--quiet")); len(left) > 0 {
			t.Errorf("containers still exist: %v", left)
		}
	})
}

// testACP answers, is killed and stopped in a run, and resumes the session each time.
func testACP(t *testing.T, r runtime) {
	f := harness.Start(t, programs, harness.Options{Env: r.env})
	f.AddGroups("main")
	f.Exec(`UPDATE registered_groups SET config = json_object('agent', json_object('command', ?)) WHERE folder = 'main'`, r.command)
	f.AddRoute("", "main")
	answer := func(text, want string) {
		t.Helper()
		if got := f.Answer(f.Say("telegram:5", text)); got != want {
			t.Errorf("answer to %q: %q, want %q", text, got, want)
		}
	}
	answer("say one", "one")
	answer("recall", "Before: say one")

	row := f.Say("telegram:5", "slow 3 recall")
	f.WaitRunning(row)
	f.Kill(harness.Gated)
	f.Restart(harness.Gated)
	if got := f.Answer(row); !strings.HasPrefix(got, "Before: say one | recall") {
		t.Errorf("after a kill: %q", got)
	}

	row = f.Say("telegram:5", "slow 600 say never")
	f.WaitRunning(row)
	f.Say("telegram:5", "/stop")
	if turn := f.WaitEnded(row); turn.State != msg.TurnCancelled {
		t.Errorf("turn %+v", turn)
	}
	if got := f.Answer(f.Say("telegram:5", "recall")); !strings.HasPrefix(got, "Before: say one | recall") {
		t.Errorf("after a stop: %q", got)
	}

	began := time.Now()
	if code := f.Stop(harness.Gated); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the stop took %s", took)
	}
}
