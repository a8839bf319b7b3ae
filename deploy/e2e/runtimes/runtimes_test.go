package runtimes

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/gobuild"
	"arizuko/pkg/testkit/need"
)

// parallel is how many instances run at once.
const parallel = "3"

var programs = harness.NewPrograms("failpoints", "arizuko/gated", "arizuko/routd", "arizuko/dashd", "arizuko/teled", "arizuko/migrations/cmd/migrate",
	"arizuko/deploy/agents/demo")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, parallel)) }

// image is the image of the demo agent.
const image = "arizuko-demo:1"

func TestRuntime_Bubblewrap(t *testing.T) {
	need.Program(t, "bwrap", "bubblewrap")
	need.Program(t, "slirp4netns", "slirp4netns")
	testRuntime(t, nil, "AGENT_SANDBOX=bwrap")
}

func TestRuntime_Docker(t *testing.T) {
	e := docker.Start(t)
	e.Import(t, image, map[string]string{"agent": build(t, "deploy/agents/demo")})
	containers := func() []string { return strings.Fields(e.Docker(t, "ps", "--all", "--quiet", "--no-trunc")) }
	env := append(e.Environ()[1:], "AGENT_RUNTIME=docker", "AGENT_IMAGE="+image, "AGENT_NETWORK=none")
	testRuntime(t, containers, env...)
	if left := containers(); len(left) > 0 {
		t.Errorf("containers still exist: %v", left)
	}
	t.Run("a missing image", func(t *testing.T) {
		f := start(t, append(env, "AGENT_IMAGE=nosuchimage:1")...)
		f.Until("the missing image to be logged", func() bool {
			return strings.Contains(f.Log(harness.Gated), "agents cannot be run as docker") && strings.Contains(f.Log(harness.Gated), "nosuchimage")
		})
		lost := f.WaitEnded(f.Say("telegram:5", "hello?"))
		if lost.State != msg.TurnFailed || !strings.Contains(lost.Error, "No such image: nosuchimage:1") {
			t.Errorf("turn %+v", lost)
		}
		out := f.Outbound("telegram:5")
		if len(out) != 1 || !strings.Contains(out[0].Content, "not set up") || strings.Contains(out[0].Content, "image") {
			t.Errorf("rows in the chat: %+v", out)
		}
	})
}

// build compiles a program of the repository statically.
func build(t *testing.T, program string) string {
	t.Helper()
	return gobuild.Program(t, gobuild.Options{Static: true}, "arizuko/"+program)
}

// start makes a running instance with a chat of the group main and one of other.
func start(t *testing.T, env ...string) *harness.Fixture {
	t.Helper()
	f := harness.Start(t, programs, harness.Options{Env: env})
	f.AddGroups("main", "other")
	f.AddRoute("chat_jid=telegram:6", "other")
	f.AddRoute("", "main")
	return f
}

// testRuntime runs the scenarios that hold in every runtime. containers lists existing containers; nil
// if the runtime has none.
func testRuntime(t *testing.T, containers func() []string, env ...string) {
	t.Run("a conversation", func(t *testing.T) {
		f := start(t, env...)
		f.Answer(f.Say("telegram:5", "one"))
		first := f.Turn(f.Say("telegram:5", "two"))
		f.WantEchoes("telegram:5", "one", "two")
		f.Answer(f.Say("telegram:6", "another group"))
		if again := f.Turn(f.Say("telegram:5", "three")); again.RunID != first.RunID {
			t.Errorf("the warm agent was not reused: run %d, then %d", first.RunID, again.RunID)
		}
		f.WantEchoes("telegram:5", "one", "two", "three")
	})
	t.Run("gated is killed", func(t *testing.T) {
		f := start(t, env...)
		row := f.Say("telegram:5", "until go think")
		f.WaitRunning(row)
		var left []string
		if containers != nil {
			f.Until("its container to exist", func() bool { left = containers(); return len(left) > 0 })
		}
		f.Kill(harness.Gated)
		f.Restart(harness.Gated)
		if containers != nil && slices.Contains(containers(), left[0]) {
			t.Error("the container of the killed gated still exists when the next one is ready")
		}
		f.LetGo("main", "go")
		f.WantEchoes("telegram:5", "until go think")
		if turn := f.Turn(row); turn.Attempts != 0 {
			t.Errorf("turn %+v", turn)
		}
	})
	t.Run("stop", func(t *testing.T) {
		f := start(t, env...)
		row := f.Say("telegram:5", "slow 600 think")
		f.WaitRunning(row)
		f.Say("telegram:5", "/stop")
		if turn := f.WaitEnded(row); turn.State != msg.TurnCancelled {
			t.Errorf("turn %+v", turn)
		}
		f.Answer(f.Say("telegram:5", "again"))
	})
	t.Run("gated stops", func(t *testing.T) {
		f := start(t, env...)
		f.Answer(f.Say("telegram:5", "one"))
		began := time.Now()
		if code := f.Stop(harness.Gated); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the stop took %s", took)
		}
		if containers != nil && len(containers()) > 0 {
			t.Errorf("containers still exist: %v", containers())
		}
		f.Restart(harness.Gated)
		f.Answer(f.Say("telegram:5", "two"))
	})
}
