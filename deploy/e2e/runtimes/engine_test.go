package runtimes

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/docker"
)

// parallel is how many instances run at once.
const parallel = "3"

var programs = harness.NewPrograms("", "arizuko/gated", "arizuko/routd", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, parallel)) }

// image is the demo agent's.
const image = "arizuko-demo:1"

func TestRuntime_Bubblewrap(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Fatalf("%v: this test needs bubblewrap: apt-get install -y bubblewrap", err)
	}
	trial(t, nil, "AGENT_SANDBOX=bwrap")
}

func TestRuntime_Docker(t *testing.T) {
	e := docker.Start(t)
	e.Import(t, image, map[string]string{"agent": build(t, "demo")})
	containers := func() []string { return strings.Fields(e.Docker(t, "ps", "--all", "--quiet", "--no-trunc")) }
	env := append(e.Environ()[1:], "AGENT_RUNTIME=docker", "AGENT_IMAGE="+image, "AGENT_NETWORK=none")
	trial(t, containers, env...)
	if left := containers(); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
	t.Run("an image that is not there", func(t *testing.T) {
		s := begin(t, append(env, "AGENT_IMAGE=nosuchimage:1")...)
		s.Until("the log says so", func() bool {
			return strings.Contains(s.Log(harness.Gated), "agents cannot be run as docker") && strings.Contains(s.Log(harness.Gated), "nosuchimage")
		})
		lost := s.WaitEnded(s.Say("telegram:5", "hello?"))
		if lost.State != msg.TurnFailed || !strings.Contains(lost.Error, "No such image: nosuchimage:1") {
			t.Errorf("turn %+v", lost)
		}
		out := s.Outbound("telegram:5")
		if len(out) != 1 || !strings.Contains(out[0].Content, "not set up") || strings.Contains(out[0].Content, "image") {
			t.Errorf("the chat was told %+v", out)
		}
	})
}

// build makes a bundled agent that runs without anything else.
func build(t *testing.T, agent string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), agent)
	cmd := exec.Command("go", "build", "-o", path, "arizuko/deploy/agents/"+agent)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// begin starts the daemons with a chat for the group main.
func begin(t *testing.T, env ...string) *harness.Fixture {
	t.Helper()
	s := harness.Start(t, programs, harness.Options{Env: env})
	s.AddGroups("main", "other")
	s.AddRoute("chat_jid=telegram:6", "other")
	s.AddRoute("", "main")
	return s
}

// trial is what every runtime has to go through. containers lists those there are; nil where the
// runtime has none.
func trial(t *testing.T, containers func() []string, env ...string) {
	t.Run("a conversation", func(t *testing.T) {
		s := begin(t, env...)
		s.Answer(s.Say("telegram:5", "one"))
		first := s.Turn(s.Say("telegram:5", "two"))
		s.WantEchoes("telegram:5", "one", "two")
		s.Answer(s.Say("telegram:6", "another group"))
		if again := s.Turn(s.Say("telegram:5", "three")); again.RunID != first.RunID {
			t.Errorf("a warm agent was not used: run %d, then %d", first.RunID, again.RunID)
		}
		s.WantEchoes("telegram:5", "one", "two", "three")
	})
	t.Run("gated dies", func(t *testing.T) {
		s := begin(t, env...)
		row := s.Say("telegram:5", "slow 3 think")
		s.WaitRunning(row)
		var left []string
		if containers != nil {
			s.Until("its container is there", func() bool { left = containers(); return len(left) > 0 })
		}
		s.Kill(harness.Gated)
		s.Restart(harness.Gated)
		if containers != nil && slices.Contains(containers(), left[0]) {
			t.Error("the container of the dead gated is still there when the next one is ready")
		}
		s.WantEchoes("telegram:5", "slow 3 think")
		if turn := s.Turn(row); turn.Attempts != 0 {
			t.Errorf("turn %+v", turn)
		}
	})
	t.Run("stop", func(t *testing.T) {
		s := begin(t, env...)
		row := s.Say("telegram:5", "slow 600 think")
		s.WaitRunning(row)
		s.Say("telegram:5", "/stop")
		if turn := s.WaitEnded(row); turn.State != msg.TurnCancelled {
			t.Errorf("turn %+v", turn)
		}
		s.Answer(s.Say("telegram:5", "again"))
	})
	t.Run("gated stops", func(t *testing.T) {
		s := begin(t, env...)
		s.Answer(s.Say("telegram:5", "one"))
		began := time.Now()
		if code := s.Stop(harness.Gated); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		if containers != nil && len(containers()) > 0 {
			t.Errorf("containers are left: %v", containers())
		}
		s.Restart(harness.Gated)
		s.Answer(s.Say("telegram:5", "two"))
	})
}
