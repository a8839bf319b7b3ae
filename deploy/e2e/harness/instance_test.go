package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/testkit/executable"
	"arizuko/pkg/testkit/need"
)

// Scripts of daemons. They print "up" when their signal handlers are set.
const (
	sleeps   = `echo up; exec sleep 1000`
	polite   = `trap 'echo bye; kill $!; exit 0' TERM; sleep 1000 & echo up; wait`
	rude     = `trap 'kill $!; exit 3' TERM; sleep 1000 & echo up; wait`
	stubborn = `trap '' TERM; echo up; exec sleep 1000`
)

// TestMain runs the tests. With the argument "start" the test binary is a helper process, which
// starts gated from a folder of programs and ends when its input ends.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "start" {
		if err := startAndWait(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func startAndWait(bin string) error {
	i, err := New(bin)
	if err != nil {
		return err
	}
	if err := i.Start("gated"); err != nil {
		return err
	}
	fmt.Println(i.Data)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// scripts makes a folder of programs that are shell scripts.
func scripts(t *testing.T, all map[string]string) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for name, text := range all {
		executable.Script(t, filepath.Join(bin, name), text)
	}
	return bin
}

// scripted is an instance whose programs are shell scripts.
func scripted(t *testing.T, all map[string]string) *Instance {
	t.Helper()
	i, err := New(scripts(t, all))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// testTimeout is a context for something that is to happen.
func testTimeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if err := Await(testTimeout(t), what, func() (bool, error) { return holds(), nil }); err != nil {
		t.Fatal(err)
	}
}

// start starts a daemon and waits until this start has logged "up".
func start(t *testing.T, i *Instance, name string, env ...string) *Process {
	t.Helper()
	before := strings.Count(logged(t, i, name), "up\n")
	if err := i.Start(name, env...); err != nil {
		t.Fatal(err)
	}
	until(t, name+" to be up", func() bool { return strings.Count(logged(t, i, name), "up\n") > before })
	return i.Process(name)
}

func logged(t *testing.T, i *Instance, name string) string {
	t.Helper()
	log, err := i.Log(name)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// ended waits until a process has ended.
func ended(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-testTimeout(t).Done():
		t.Fatal("timed out waiting for the process to end")
	}
}

func TestStart_Daemon_HasInstanceEnvironmentOnly(t *testing.T) {
	t.Setenv("HOST_SECRET", "1")
	i := scripted(t, map[string]string{"gated": `pwd; env | sort; echo up; exec sleep 1000`})
	i.Env = append(i.Env, "MORE=1", "POLL=1")
	start(t, i, "gated", "FAILPOINT=read:1", "POLL=2")
	log := logged(t, i, "gated")
	for _, want := range []string{
		i.Data, "ARIZUKO_DATA=" + i.Data, "HOME=" + i.Data, "TZ=UTC", "GATED_ADDR=" + i.Host + ":8080", "GATED_MCP_ADDR=" + i.Host + ":8084", "EGRESS_ADDR=" + i.Host + ":8086", "EGRESS_PROXY_ADDR=" + i.Host + ":8085", "ROUTD_ADDR=" + i.Host + ":8081",
		"DASHD_ADDR=" + i.Host + ":8083", "TELED_ADDR=" + i.Host + ":8091", "MORE=1", "FAILPOINT=read:1", "POLL=2",
	} {
		if !strings.Contains(log, want+"\n") {
			t.Errorf("the environment lacks %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, "HOST_SECRET") || strings.Contains(log, "POLL=1") {
		t.Errorf("the environment has too much:\n%s", log)
	}
	if strings.Contains(strings.Join(i.Env, " "), "FAILPOINT") {
		t.Error("the environment of one start is added to all")
	}
}

func TestStop_ExitCode_IsReturned(t *testing.T) {
	for name, tc := range map[string]struct {
		script, want string
	}{
		"polite":  {polite, ""},
		"rude":    {rude, "gated ended with exit status 3"},
		"default": {sleeps, "gated ended with signal: terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			i := scripted(t, map[string]string{"gated": tc.script})
			p := start(t, i, "gated")
			err := i.Stop(testTimeout(t), "gated")
			if got := text(err); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
			if i.Running("gated") || p.Killed() {
				t.Errorf("running: %t, killed: %t", i.Running("gated"), p.Killed())
			}
			if again := text(i.Stop(testTimeout(t), "gated")); again != tc.want {
				t.Errorf("second stop: error %q, want %q", again, tc.want)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestProcess_Killed_OnlyBySIGKILL(t *testing.T) {
	for script, want := range map[string]bool{
		`kill -9 $$`:  true,
		`kill -15 $$`: false,
		`exit 137`:    false, // how shells report a SIGKILL
		`exit 0`:      false,
	} {
		i := scripted(t, map[string]string{"gated": script})
		if err := i.Start("gated"); err != nil {
			t.Fatal(err)
		}
		p := i.Process("gated")
		ended(t, p)
		if p.Killed() != want || p.Running() {
			t.Errorf("%s: ended with %s, killed: %t", script, p.State(), p.Killed())
		}
	}
}

// agent is a script that starts a process in a group's folder.
const agent = `mkdir -p groups/main; (cd groups/main && exec setsid sleep 1000) & until test "$(readlink /proc/$!/exe)" != "$(readlink /proc/$$/exe)"; do :; done; echo up; exec sleep 1000`

func TestClose_AgentOfKilledDaemon_IsKilled(t *testing.T) {
	i, other := scripted(t, map[string]string{"gated": agent}), scripted(t, map[string]string{"gated": agent})
	if agents, err := i.Agents(); err != nil || len(agents) > 0 {
		t.Errorf("agents before the start: %v, %v", agents, err)
	}
	p := start(t, i, "gated")
	start(t, other, "gated")
	agents, err := i.Agents()
	if err != nil || len(agents) != 1 || slices.Contains(agents, p.PID()) {
		t.Fatalf("agents: %v, %v", agents, err)
	}
	if err := i.Kill("gated"); err != nil {
		t.Fatal(err)
	}
	if still, err := i.Agents(); err != nil || !slices.Equal(still, agents) {
		t.Errorf("agents after the kill: %v, %v, want %v", still, err, agents)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "agents to end", func() bool { left, _ := i.Agents(); return len(left) == 0 })
	if left, err := other.Agents(); err != nil || len(left) != 1 {
		t.Errorf("agents of the other instance: %v, %v", left, err)
	}
}

func TestClose_RunningDaemons_KilledAndFoldersRemoved(t *testing.T) {
	i := scripted(t, map[string]string{"gated": stubborn, "routd": stubborn})
	gated, routd := start(t, i, "gated"), start(t, i, "routd")
	for range 2 { // the second time nothing is left
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if gated.Running() || routd.Running() || !gated.Killed() || !routd.Killed() {
		t.Errorf("ended with %s and %s", gated.State(), routd.State())
	}
	if _, err := os.Stat(i.Data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data folder still exists: %v", err)
	}
}

func TestStart_ParentEnds_DaemonIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := scripts(t, map[string]string{"gated": `mkdir -p groups/main; cd groups/main; exec sleep 1000`})
	helper := exec.Command(self, "start", bin)
	helper.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	stdin, err := helper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	data, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(errors.Join(err, helper.Wait()))
	}
	i := &Instance{Data: strings.TrimSpace(data)}
	defer i.Close()
	agents := func() int { all, _ := i.Agents(); return len(all) }
	until(t, "gated to run", func() bool { return agents() == 1 })
	stdin.Close()
	if err := helper.Wait(); err != nil {
		t.Fatal(err)
	}
	until(t, "gated to end", func() bool { return agents() == 0 })
}

func TestInstance_RunAs_DaemonsAndCommandsAreOfThatUser(t *testing.T) {
	t.Parallel()
	need.Root(t)
	i := scripted(t, map[string]string{"gated": "id -u; id -g; echo up", "routd": "id -u; id -g; id -G"})
	for _, name := range []string{"gated", "routd"} {
		if err := os.Chmod(i.Program(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(i.Program("gated"))), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chown(i.Data, 4242, 4243), i.RunAs(4242, 4243)); err != nil {
		t.Fatal(err)
	}
	ended(t, start(t, i, "gated"))
	if got := logged(t, i, "gated"); got != "4242\n4243\nup\n" {
		t.Errorf("the daemon is of %q", got)
	}
	if out, err := i.Command("routd").CombinedOutput(); err != nil || string(out) != "4242\n4243\n4243\n" {
		t.Errorf("the command is of %q, %v", out, err)
	}
}
