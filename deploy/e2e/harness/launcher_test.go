package harness

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestLauncher_Scripted_OutputReadyAndEnd(t *testing.T) {
	f := NewLauncherFixture(t, scripts(t, map[string]string{
		"launcher": `trap 'kill $!; wait; exit 75' TERM; pwd >&2; env | grep MORE >&2; echo ready "$@"; sleep 1000 & wait`,
	}), "MORE=1")
	if _, err := os.Stat(f.Instance.Data); !os.IsNotExist(err) {
		t.Errorf("the data folder exists: %v", err)
	}
	l := f.Launch("serve")
	if line := l.WaitReady(); line != "ready serve\n" {
		t.Errorf("the line is %q", line)
	}
	l.WaitOutput("MORE=1\n")
	if got, want := l.Stderr(), f.Instance.Dir+"\nMORE=1\n"; got != want {
		t.Errorf("stderr: %q, want %q", got, want)
	}
	// The signal must not reach the shell while it forks: its child would ignore it.
	f.Until("one sleep", func() bool { return len(f.Processes("sleep")) == 1 })
	l.Signal(syscall.SIGTERM)
	l.WantEnd(75)
}

func TestLauncherFixture_KillAndSuspend_ReachDaemonByName(t *testing.T) {
	f := NewLauncherFixture(t, scripts(t, map[string]string{
		"launcher": `sleep 1000 & echo up; wait; echo again; exec sleep 1000`,
	}))
	l := f.Launch()
	l.WaitReady()
	f.Until("one sleep", func() bool { return len(f.Processes("sleep")) == 1 })
	f.Suspend("sleep")
	if state := processState(f.Processes("sleep")[0]); state != "T" {
		t.Errorf("state %q after Suspend", state)
	}
	f.Kill("sleep")
	f.Until("the launcher to go on", func() bool { return strings.HasSuffix(l.Stdout(), "again\n") })
}

func TestProcesses_OtherInstance_NotListed(t *testing.T) {
	one, two := scripted(t, map[string]string{"gated": sleeps}), scripted(t, map[string]string{"gated": sleeps})
	p := start(t, one, "gated")
	until(t, "the shell to become sleep", func() bool { pids, _ := one.Processes("sleep"); return len(pids) > 0 })
	for i, want := range map[*Instance]int{one: 1, two: 0} {
		pids, err := i.Processes("")
		if err != nil || len(pids) != want {
			t.Errorf("processes %v, %v, want %d", pids, err, want)
		}
	}
	if pids, _ := one.Processes("sleep"); len(pids) != 1 || pids[0] != p.PID() {
		t.Errorf("sleep runs as %v, want %d", pids, p.PID())
	}
	if pids, _ := one.Processes("gated"); len(pids) != 0 {
		t.Errorf("gated runs as %v", pids)
	}
}
