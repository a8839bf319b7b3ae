package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

const (
	// processPoll is how often a process that is not our child is checked.
	processPoll = 10 * time.Millisecond
	// killWait is how long SIGKILL may take: longer means a process stuck in the kernel.
	killWait = 5 * time.Second
)

// process identifies a process for ever, while its id alone may be reused. The zero value is none.
type process struct {
	pid     int
	started int64 // clock ticks since boot
}

// processOf is the process that has an id now, the zero value if there is none.
func processOf(pid int) process {
	st, err := readStat(pid)
	if err != nil {
		return process{}
	}
	return process{pid, int64(st.Starttime)}
}

// alive is true also if that is not known.
func (p process) alive() bool {
	if p == (process{}) {
		return false
	}
	st, err := readStat(p.pid)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return int64(st.Starttime) == p.started && !dead(st)
}

// terminate asks the processes of the group that it leads to exit.
func (p process) terminate() {
	if p.alive() {
		_ = syscall.Kill(-p.pid, syscall.SIGTERM)
	}
}

// endInit ends the first process of a sandbox and waits until it has ended: then nothing of the sandbox is left.
func (p process) endInit() error {
	if !p.alive() {
		return nil
	}
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	if !within(killWait, func() bool { return !p.alive() }) {
		return fmt.Errorf("the sandbox of process %d is still there after SIGKILL", p.pid)
	}
	return nil
}

// endProcesses ends the processes that match: SIGTERM once if there is a grace, and SIGKILL after it. match returns the
// argument of kill(2) for a process: its id, the negative id of its group to end that with all its members, or 0 for a
// process that does not match. It returns when they have ended; an error names those that have not. found is false if
// there was none.
func endProcesses(grace time.Duration, match func(procfs.ProcStat) int) (found bool, err error) {
	var left []int
	known := map[int]bool{} // a member of such a group belongs to it even when the others have ended
	clean := 0              // one look may miss a process that was just forked
	look := func(signal syscall.Signal) (gone bool) {
		left = nil
		var all procfs.Procs
		if all, err = procfs.AllProcs(); err != nil {
			return true
		}
		for _, p := range all {
			st, statErr := readStat(p.PID)
			if statErr != nil || dead(st) || st.PID <= 1 || st.PID == os.Getpid() {
				continue
			}
			target := -st.PGRP
			if !known[target] {
				target = match(st)
			}
			if target == 0 {
				continue
			}
			left, found = append(left, st.PID), true
			if signal == syscall.SIGKILL || !known[target] {
				_ = syscall.Kill(target, signal)
			}
			known[target] = true
		}
		if clean++; len(left) > 0 {
			clean = 0
		}
		return clean >= 2
	}
	if grace > 0 && within(grace, func() bool { return look(syscall.SIGTERM) }) ||
		within(killWait, func() bool { return look(syscall.SIGKILL) }) {
		return found, err
	}
	return found, fmt.Errorf("processes %v are still there after SIGKILL", left)
}

// group is for endProcesses: it matches the process group of a run that was recorded.
//
// Process ids are reused. So the group's leader must have started at PIDStart or, when it has ended, a member must have
// the run's id in its environment: the kernel does not reuse an id that is in use as a group's.
func (o Orphan) group(st procfs.ProcStat) int {
	if o.PID <= 1 || st.PGRP != o.PID { // kill(2) takes -1 for every process, 0 for our own group
		return 0
	}
	leader, err := readStat(o.PID)
	if err == nil && int64(leader.Starttime) == o.PIDStart ||
		errors.Is(err, fs.ErrNotExist) && hasMarkers(st.PID, runMarker(o.RunID)) {
		return -o.PID
	}
	return 0
}

// end ends the process group of a run, if it was recorded, and processes that match with the groups that they lead.
func (o Orphan) end(match func(pid int) bool) (found bool, err error) {
	return endProcesses(o.Grace, func(st procfs.ProcStat) int {
		switch {
		case !match(st.PID):
			return o.group(st)
		case st.PGRP == st.PID:
			return -st.PID
		}
		return st.PID
	})
}

// hasMarkers reports whether a process was started with all of these environment entries.
func hasMarkers(pid int, markers ...string) bool {
	env := environOf(pid)
	return !slices.ContainsFunc(markers, func(marker string) bool { return !slices.Contains(env, marker) })
}

// environOf is the environment with which a process was started, nil if it is not known.
func environOf(pid int) []string {
	env, err := os.ReadFile(procPath(pid, "environ"))
	if err != nil {
		return nil
	}
	return strings.Split(string(env), "\x00")
}

// within waits for a condition for up to limit.
func within(limit time.Duration, met func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	poll := time.NewTicker(processPoll)
	defer poll.Stop()
	for {
		if met() {
			return true
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			return false
		}
	}
}

// readStat returns fs.ErrNotExist if there is no such process.
func readStat(pid int) (st procfs.ProcStat, err error) {
	p, err := procfs.NewProc(pid)
	if err == nil {
		st, err = p.Stat()
	}
	if errors.Is(err, syscall.ESRCH) { // it ended between open and read
		err = fs.ErrNotExist
	}
	return st, err
}

// dead reports whether a process has ended. Zombies have: in a container there may be no process that reaps them.
func dead(st procfs.ProcStat) bool { return st.State == "Z" || st.State == "X" }

func procPath(pid int, file string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), file)
}

// CountTasks is how many processes and threads a user has now. Those that end meanwhile may be left out.
func CountTasks(uid int) (count int, err error) {
	all, err := procfs.AllProcs()
	for _, p := range all {
		var owner syscall.Stat_t
		if syscall.Stat(procPath(p.PID, ""), &owner) != nil || int(owner.Uid) != uid {
			continue
		}
		if st, err := readStat(p.PID); err == nil {
			count += st.NumThreads
		}
	}
	return count, err
}
