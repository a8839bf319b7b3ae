package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/gobuild"
)

// maxWait is how long a test waits for anything; the machine may be busy.
const maxWait = 3 * time.Minute

// Paths of programs, built by TestMain.
var bridge, fakeAgent string

func TestMain(m *testing.M) { os.Exit(withPrograms(m.Run)) }

func withPrograms(run func() int) int {
	dir, err := os.MkdirTemp("", "acp-agent-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := gobuild.Programs(dir, gobuild.Options{}, "arizuko/deploy/agents/acp", "arizuko/pkg/testkit/fakes/cmd/fakeagent"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bridge, fakeAgent = filepath.Join(dir, "acp"), filepath.Join(dir, "fakeagent")
	return run()
}

// group is a group's folder with an agent's command.
type group struct {
	t       *testing.T
	folder  string
	command []string
	environ []string
	maxWait time.Duration // for all of a run; 0 is maxWait
}

// fake is a group with the fake agent, which has these faults.
func fake(t *testing.T, faults ...string) *group {
	t.Helper()
	return &group{t: t, folder: t.TempDir(), command: append([]string{fakeAgent}, faults...)}
}

// session is a running bridge.
type session struct {
	*group
	*agenttest.Run
}

// open starts the bridge with extra added to its environment.
func (g *group) open(extra ...string) *session {
	g.t.Helper()
	cmd := exec.Command(bridge, g.command...)
	cmd.Dir = g.folder
	cmd.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.t.TempDir(), "LANG=C.UTF-8", "TMPDIR=" + g.t.TempDir()}, g.environ, extra)
	s := &session{g, agenttest.Start(g.t, cmd, cmp.Or(g.maxWait, maxWait))}
	g.t.Cleanup(func() {
		if log := s.Log.String(); strings.Contains(log, "broken protocol") {
			g.t.Errorf("the bridge broke the protocol:\n%s", log)
		}
	})
	return s
}

// busy waits until the agent has said something of the turn under way.
func (s *session) busy() {
	s.t.Helper()
	s.Until("event", func(e agentproto.Event) bool { return e.Tool != nil || e.Text != nil })
}

// wantExit ends the input, and fails the test unless the bridge exits with that code, without another frame, and with all
// that it has started.
func (s *session) wantExit(want int) {
	s.t.Helper()
	s.WantExit(want)
	if left := processesIn(s.t, s.folder); len(left) > 0 {
		s.t.Errorf("processes are left behind: %q", left)
	}
}

// waitNone waits until no process runs in a folder.
func waitNone(t *testing.T, folder string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; <-time.After(10 * time.Millisecond) {
		left := processesIn(t, folder)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still running: %q", left)
		}
	}
}

// processesIn are the commands of the processes that run in a folder.
func processesIn(t *testing.T, folder string) (commands []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == folder {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			commands = append(commands, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return commands
}
