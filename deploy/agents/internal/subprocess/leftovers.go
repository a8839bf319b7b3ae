// Package subprocess runs the command line programs that agents are made of.
package subprocess

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A CLI runs commands in separate sessions, which a signal to the agent's process group does not
// reach. If the CLI is killed they would run on during the next attempt of the turn.

// AdoptOrphans makes descendants of this process its children when their parents end.
func AdoptOrphans() error {
	const prSetChildSubreaper = 36 // linux/prctl.h
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return os.NewSyscallError("prctl", errno)
	}
	return nil
}

// KillLeftovers kills the children of this process, and the orphans that become its children.
func KillLeftovers() {
	for range 1000 { // generations; endless forks are left to the runtime
		children := children()
		if len(children) == 0 {
			return
		}
		for _, pid := range children {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
	}
}

func children() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is valid
	for _, path := range lists {
		list, err := os.ReadFile(path)
		if err != nil {
			continue // an ended thread
		}
		for _, field := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
