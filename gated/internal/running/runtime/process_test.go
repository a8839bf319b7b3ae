package runtime

import (
	"bufio"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
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
	p := processOf(pid)
	if p == (process{}) {
		t.Fatalf("there is no process %d", pid)
	}
	return p.started
}

// groupAlive reports whether a process of the group has not ended.
func groupAlive(t *testing.T, group int) (alive bool) {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(p procfs.Proc) bool {
		st, err := readStat(p.PID)
		return err == nil && st.PGRP == group && !dead(st)
	})
}

func wantEnd(t *testing.T, left Orphan, want bool) {
	t.Helper()
	found, err := endProcesses(50*time.Millisecond, left.group)
	if err != nil || found != want {
		t.Fatalf("endProcesses = %v, %v, want %v", found, err, want)
	}
}

func TestEndProcesses(t *testing.T) {
	for name, command := range map[string]string{
		"obedient":           "echo up; exec sleep 1000",
		"ignores SIGTERM":    "trap '' TERM; echo up; exec sleep 1000",
		"member ignores it":  "(trap '' TERM; exec env -i sleep 1000) & echo up; wait",
		"several in a group": "sleep 1000 & sleep 1000 & echo up; wait",
	} {
		t.Run(name, func(t *testing.T) {
			pid, _, _ := leaveOrphan(t, command)
			left := Orphan{RunID: orphanRun, PID: pid, PIDStart: startTime(t, pid)}
			wantEnd(t, left, true)
			if groupAlive(t, pid) {
				t.Error("the group is alive")
			}
			wantEnd(t, left, false)
		})
	}
}

func TestEndProcesses_PIDReused_KillsNothing(t *testing.T) {
	pid, _, _ := leaveOrphan(t, "echo up; exec sleep 1000")
	wantEnd(t, Orphan{RunID: orphanRun, PID: pid, PIDStart: startTime(t, pid) - 1}, false)
	stale := process{pid, startTime(t, pid) - 1} // as the first process of a sandbox that has ended
	stale.terminate()
	if err := stale.endInit(); err != nil || !groupAlive(t, pid) {
		t.Errorf("another process with its id: %v", err)
	}
}

func TestEndProcesses_LeaderHasExited(t *testing.T) {
	pid, member, dead := leaveOrphan(t, "sleep 1000 >/dev/null & echo $!")
	<-dead
	if memberPID, err := strconv.Atoi(member); err != nil || startTime(t, memberPID) == 0 {
		t.Fatalf("member %q: %v", member, err)
	}
	wantEnd(t, Orphan{RunID: orphanRun + 1, PID: pid, PIDStart: 1}, false) // of another process group
	if !groupAlive(t, pid) {
		t.Fatal("another run's processes were ended")
	}
	wantEnd(t, Orphan{RunID: orphanRun, PID: pid, PIDStart: 1}, true)
}

// In a container there may be no init process to reap the children of a killed gated.
func TestEndProcesses_Zombies_CountAsDead(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	awaitExit(cmd.Process.Pid)
	wantEnd(t, Orphan{RunID: orphanRun, PID: cmd.Process.Pid, PIDStart: startTime(t, cmd.Process.Pid)}, false)
}

func TestEndProcesses_OtherGroups_AreSpared(t *testing.T) {
	for _, pid := range []int{-5, -1, 0, 1} {
		wantEnd(t, Orphan{RunID: orphanRun, PID: pid}, false)
	}
	// A process that leads no group: a group kill would miss it, or hit others.
	pid, member, _ := leaveOrphan(t, "sleep 1000 >/dev/null & echo $!; wait")
	memberPID, err := strconv.Atoi(member)
	if err != nil {
		t.Fatal(err)
	}
	wantEnd(t, Orphan{RunID: orphanRun, PID: memberPID, PIDStart: startTime(t, memberPID)}, false)
	if !groupAlive(t, pid) {
		t.Error("the group was ended")
	}
}
