package runtime

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const orphanRun = 41

// leaveOrphan starts command as an earlier gated would have, waits for its first
// line of output and returns its process group with the line. The leader is
// reaped as soon as it is dead.
func leaveOrphan(t *testing.T, command string) (pid int, firstLine string, dead <-chan struct{}) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Env = []string{runMarker(orphanRun)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-reaped
	})
	return cmd.Process.Pid, strings.TrimSpace(line), reaped
}

func startTime(t *testing.T, pid int) int64 {
	t.Helper()
	st, err := readStat(pid)
	if err != nil {
		t.Fatal(err)
	}
	return st.started
}

func wantKill(t *testing.T, runID int64, pid int, started int64, want bool) {
	t.Helper()
	killed, err := killGroup(Orphan{RunID: runID, PID: pid, PIDStart: started, Grace: 50 * time.Millisecond})
	if err != nil || killed != want {
		t.Fatalf("killGroup = %v, %v, want %v", killed, err, want)
	}
	if alive, err := groupAlive(pid); err != nil || alive == want {
		t.Fatalf("group alive = %v, %v after killGroup = %v", alive, err, killed)
	}
}

func TestKill(t *testing.T) {
	for name, command := range map[string]string{
		"obedient":           "echo up; exec sleep 1000",
		"ignores SIGTERM":    "trap '' TERM; echo up; exec sleep 1000",
		"member ignores it":  "(trap '' TERM; exec env -i sleep 1000) & echo up; wait",
		"several in a group": "sleep 1000 & sleep 1000 & echo up; wait",
	} {
		t.Run(name, func(t *testing.T) {
			pid, _, _ := leaveOrphan(t, command)
			started := startTime(t, pid)
			wantKill(t, orphanRun, pid, started, true)
			if killed, err := killGroup(Orphan{RunID: orphanRun, PID: pid, PIDStart: started}); killed || err != nil {
				t.Errorf("second killGroup = %v, %v", killed, err)
			}
		})
	}
}

func TestKill_PIDReused_KillsNothing(t *testing.T) {
	pid, _, _ := leaveOrphan(t, "echo up; exec sleep 1000")
	wantKill(t, orphanRun, pid, startTime(t, pid)-1, false)
}

func TestKill_LeaderHasExited(t *testing.T) {
	pid, member, dead := leaveOrphan(t, "sleep 1000 >/dev/null & echo $!")
	<-dead
	if memberPID, err := strconv.Atoi(member); err != nil || startTime(t, memberPID) == 0 {
		t.Fatalf("member %q: %v", member, err)
	}
	wantKill(t, orphanRun+1, pid, 1, false) // of another process group
	wantKill(t, orphanRun, pid, 1, true)
}

// In a container there may be no init process to reap the children of a killed gated.
func TestKill_Zombies_CountAsDead(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	awaitExit(cmd.Process.Pid)
	if killed, err := killGroup(Orphan{RunID: orphanRun, PID: cmd.Process.Pid, PIDStart: startTime(t, cmd.Process.Pid)}); killed || err != nil {
		t.Errorf("killGroup = %v, %v", killed, err)
	}
}

func TestKill_OtherGroups_AreSpared(t *testing.T) {
	for _, pid := range []int{-5, -1, 0, 1} {
		if killed, err := killGroup(Orphan{RunID: orphanRun, PID: pid}); killed || err != nil {
			t.Errorf("pid %d: %v, %v", pid, killed, err)
		}
	}
	// A process that leads no group: a group kill would miss it, or hit others.
	pid, member, _ := leaveOrphan(t, "sleep 1000 >/dev/null & echo $!; wait")
	memberPID, err := strconv.Atoi(member)
	if err != nil {
		t.Fatal(err)
	}
	if killed, err := killGroup(Orphan{RunID: orphanRun, PID: memberPID, PIDStart: startTime(t, memberPID)}); killed || err != nil {
		t.Errorf("member: %v, %v", killed, err)
	}
	if alive, err := groupAlive(pid); err != nil || !alive {
		t.Errorf("group alive = %v, %v", alive, err)
	}
}

func TestParseStat(t *testing.T) {
	rest := " S 1 4242 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20 21"
	for _, name := range []string{"sh", "a b", ") S 9 9", "((", ""} {
		st, err := parseStat([]byte("77 (" + name + ")" + rest))
		if err != nil || st != (stat{state: 'S', group: 4242, started: 987654}) {
			t.Errorf("%q: %+v, %v", name, st, err)
		}
	}
	for _, line := range []string{"", ")", "77 (sh) S 1", "77 (sh)" + strings.ReplaceAll(rest, "987654", "x")} {
		if _, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}
