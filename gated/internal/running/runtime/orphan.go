package runtime

import (
	"bytes"
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
)

const (
	// orphanPoll is how often a process that is not our child is checked.
	orphanPoll = 10 * time.Millisecond
	// killWait is how long SIGKILL may take: longer means a process stuck in the kernel.
	killWait = 5 * time.Second
)

// killGroup ends the process group of a run of an earlier gated: SIGTERM, and
// SIGKILL after the grace. It returns when the group has ended; killed is false if
// it had ended before.
//
// Process ids are reused, so nothing is touched unless the process with that pid
// started at PIDStart or, when the leader is dead, a member of its group carries
// the run's id in its environment.
func killGroup(left Orphan) (killed bool, err error) {
	if left.PID <= 1 {
		return false, nil // kill(2) takes -1 for every process, 0 for our own group
	}
	if ours, err := isRun(left.RunID, left.PID, left.PIDStart); err != nil || !ours {
		return false, err
	}
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, left.Grace}, {syscall.SIGKILL, killWait}} {
		if err := syscall.Kill(-left.PID, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return false, fmt.Errorf("signal process group %d: %w", left.PID, err)
		}
		gone, err := within(step.wait, func() (bool, error) {
			alive, err := groupAlive(left.PID)
			return !alive, err
		})
		if err != nil || gone {
			return gone, err
		}
	}
	return false, fmt.Errorf("process group %d is still there after SIGKILL", left.PID)
}

// isRun reports whether the group is alive and belongs to the run. The kernel does
// not reuse a process id that is in use as a group id, so one member known to be
// the run's identifies the group.
func isRun(runID int64, pid int, pidStart int64) (bool, error) {
	leader, err := readStat(pid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return anyMember(pid, func(member int) bool { return hasMarker(member, runMarker(runID)) })
	case err != nil:
		return false, err
	case leader.started != pidStart:
		return false, nil
	default:
		return groupAlive(pid)
	}
}

// killMarked kills the processes of a run that was not recorded: those with its id in
// their environment that also are of this instance, since other instances have the same
// run ids. It returns when they have ended.
func killMarked(runID int64, ofInstance func(pid int) bool) (killed bool, err error) {
	return killAllOf(func(pid int) bool { return hasMarker(pid, runMarker(runID)) && ofInstance(pid) })
}

// killAllOf kills the processes that match and those of the process groups that they
// lead. It returns when they have ended; an error names those that have not.
func killAllOf(match func(pid int) bool) (killed bool, err error) {
	var left []int
	clean := 0 // one look may miss a process that was just forked
	gone, err := within(killWait, func() (bool, error) {
		left = nil
		pids, err := processes()
		for _, pid := range pids {
			st, e := readStat(pid)
			if e != nil || st.dead() || pid <= 1 || pid == os.Getpid() || !match(pid) {
				continue
			}
			left, killed = append(left, pid), true
			if st.group == pid {
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if clean++; len(left) > 0 {
			clean = 0
		}
		return clean == 2, err
	})
	if err == nil && !gone {
		err = fmt.Errorf("processes %v are still there after SIGKILL", left)
	}
	return killed, err
}

func hasMarker(pid int, marker string) bool { return slices.Contains(environOf(pid), marker) }

// environOf is the environment with which a process was started, nil if it is not known.
func environOf(pid int) []string {
	env, err := os.ReadFile(procPath(pid, "environ"))
	if err != nil {
		return nil
	}
	return strings.Split(string(env), "\x00")
}

// within waits for a condition for up to limit.
func within(limit time.Duration, met func() (bool, error)) (bool, error) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	poll := time.NewTicker(orphanPoll)
	defer poll.Stop()
	for {
		if ok, err := met(); ok || err != nil {
			return ok, err
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			return false, nil
		}
	}
}

func groupAlive(group int) (bool, error) {
	return anyMember(group, func(int) bool { return true })
}

// anyMember looks for a live process of the group. Zombies count as dead: in a
// container there may be no process that reaps them.
func anyMember(group int, accept func(pid int) bool) (bool, error) {
	pids, err := processes()
	return slices.ContainsFunc(pids, func(pid int) bool {
		st, err := readStat(pid)
		return err == nil && st.group == group && !st.dead() && accept(pid)
	}), err
}

// processes lists all visible processes of this machine.
func processes() (pids []int, err error) {
	entries, err := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// stat has the fields of /proc/<pid>/stat that are used.
type stat struct {
	state   byte
	group   int
	started int64 // clock ticks since boot
}

func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }

// readStat returns fs.ErrNotExist if there is no such process.
func readStat(pid int) (stat, error) {
	line, err := os.ReadFile(procPath(pid, "stat"))
	if errors.Is(err, syscall.ESRCH) {
		return stat{}, fs.ErrNotExist // it ended between open and read
	}
	if err != nil {
		return stat{}, err
	}
	return parseStat(line)
}

// parseStat counts fields from the last parenthesis: the command name in field 2
// may itself hold spaces and parentheses.
func parseStat(line []byte) (stat, error) {
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("unexpected process status %q", line)
	}
	group, errGroup := strconv.Atoi(string(fields[2]))                  // field 5, pgrp
	started, errStarted := strconv.ParseInt(string(fields[19]), 10, 64) // field 22, starttime
	if err := errors.Join(errGroup, errStarted); err != nil {
		return stat{}, fmt.Errorf("unexpected process status %q: %w", line, err)
	}
	return stat{state: fields[0][0], group: group, started: started}, nil
}

func procPath(pid int, file string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), file)
}
