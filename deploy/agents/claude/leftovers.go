package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The CLI runs commands in sessions of their own, which a signal to the agent's process group
// does not reach. When the CLI is killed they would go on beside the turn's next attempt.

// adoptOrphans has processes below this one become its children when their parents die.
func adoptOrphans() error {
	const prSetChildSubreaper = 36 // linux/prctl.h
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return os.NewSyscallError("prctl", errno)
	}
	return nil
}

// endLeftovers kills the children of this process, and theirs when they are its own.
func endLeftovers() {
	for range 1000 { // generations; something that forks for ever is the runtime's to end
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
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is good
	for _, path := range lists {
		list, err := os.ReadFile(path)
		if err != nil {
			continue // a thread that is no more
		}
		for _, field := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
