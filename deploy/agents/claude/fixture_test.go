package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/gobuild"
	"arizuko/pkg/testkit/need"
)

// maxWait is how long a test waits for anything; the machine may be busy.
const maxWait = 3 * time.Minute

// agentBinary is the path of the agent, built by TestMain.
var agentBinary string

func TestMain(m *testing.M) {
	if script := os.Getenv("SCRIPT"); script != "" {
		os.Exit(fakeCLI(script))
	}
	os.Exit(withBinary(m.Run))
}

func withBinary(run func() int) int {
	dir, err := os.MkdirTemp("", "claude-agent-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	agentBinary = filepath.Join(dir, "claude")
	if err := gobuild.Programs(dir, gobuild.Options{}, "arizuko/deploy/agents/claude"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// realCLI is the Claude Code that this folder's package.json pins, or $CLAUDE_CLI.
func realCLI(t *testing.T) string {
	t.Helper()
	need.Full(t)
	path := os.Getenv("CLAUDE_CLI")
	if path == "" {
		path = filepath.Join("node_modules", ".bin", "claude")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run `make setup`, or name one in CLAUDE_CLI", err)
	}
	return path
}

// fixture is a group's folder, a home and a fake model.
type fixture struct {
	t       *testing.T
	model   *anthropic.Server
	key     string
	base    string
	home    string
	group   string
	command string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return fixtureWith(t, realCLI(t))
}

func fixtureWith(t *testing.T, command string) *fixture {
	t.Helper()
	model := anthropic.New(anthropic.Options{})
	base, err := model.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	return &fixture{
		t: t, model: model, key: model.Key(), base: base,
		home: t.TempDir(), group: t.TempDir(), command: command,
	}
}

// session is a running agent.
type session struct {
	*fixture
	*agenttest.Run
}

// open starts the agent in the group's folder, with extra added to its environment.
func (r *fixture) open(extra ...string) *session {
	r.t.Helper()
	cmd := exec.Command(agentBinary)
	cmd.Dir = r.group
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "LANG=C.UTF-8", "TMPDIR=" + r.t.TempDir(),
		"CLAUDE_COMMAND=" + r.command, "ANTHROPIC_API_KEY=" + r.key, "ANTHROPIC_BASE_URL=" + r.base,
	}, extra...)
	s := &session{r, agenttest.Start(r.t, cmd, maxWait)}
	r.t.Cleanup(s.checkSecrets)
	return s
}

// checkSecrets fails the test if credentials are in the agent's output.
func (s *session) checkSecrets() {
	s.t.Helper()
	for _, secret := range []string{s.key, s.model.Key(), mcpToken} {
		if secret == "" {
			continue
		}
		if strings.Contains(s.Log.String(), secret) {
			s.t.Errorf("%q is in the log", secret)
		}
		for _, f := range s.Frames {
			if strings.Contains(f.Result+f.Error, secret) {
				s.t.Errorf("%q is in the frame %+v", secret, f)
			}
		}
	}
}

// begin starts the run with an order, as turn 1, and waits until the model has it.
func (s *session) begin(order string) {
	s.t.Helper()
	s.Send(agenttest.First("1", "", order))
	s.waitCall(order)
}

// waitCall waits for a call of the model with an order.
func (s *session) waitCall(order string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), maxWait)
	defer cancel()
	if _, err := s.model.Wait(ctx, func(c anthropic.Call) bool { return c.Command == order }); err != nil {
		s.t.Fatalf("the model was not asked to %s: %v", order, err)
	}
}

// cliPID is the process id of the CLI.
func (s *session) cliPID() int {
	s.t.Helper()
	all := descendants(s.t, s.Cmd.Process.Pid)
	if len(all) == 0 {
		s.t.Fatal("the agent has no child")
	}
	return all[0]
}

// descendants are the children of a process, their children, and so on.
func descendants(t *testing.T, pid int) (all []int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tasks {
		children, err := os.ReadFile(path)
		if err != nil {
			continue // an ended thread
		}
		for _, field := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			all = append(append(all, child), descendants(t, child)...)
		}
	}
	return all
}
