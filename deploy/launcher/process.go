package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"arizuko/pkg/daemon"
)

const (
	// stopTimeout is above the 8 s a daemon takes at most for a clean stop.
	stopTimeout = 10 * time.Second
	// drain is how long output is waited for that something else than the program holds open.
	drain = time.Second
)

// starter starts processes from one operating system thread that lives as long as the
// launcher. The kernel sends the parent-death signal when the thread that started a process
// ends, and Go ends threads as it likes.
type starter struct{ work chan func() }

func newStarter() starter {
	s := starter{make(chan func())}
	go func() {
		runtime.LockOSThread()
		for do := range s.work {
			do()
		}
	}()
	return s
}

func (s starter) start(cmd *exec.Cmd) error {
	done := make(chan error)
	s.work <- func() { done <- cmd.Start() }
	return <-done
}

// close ends the thread, and with it whatever process still runs.
func (s starter) close() { close(s.work) }

// ending is how a program ended.
type ending struct {
	code  int    // exit code, -1 after a signal
	how   string // for people: "exit status 1", "signal: killed"
	words string // the last line it printed
}

func (e ending) String() string {
	if e.words == "" {
		return "ended with " + e.how
	}
	return fmt.Sprintf("ended with %s, its last words: %s", e.how, e.words)
}

// execute runs a program of the bin folder until it ends. When ctx ends it is asked to stop;
// it is killed, with all it has started, when it takes too long or kill is closed.
func (l *launcher) execute(ctx context.Context, name string, args ...string) ending {
	out := &source{console: l.console, name: name}
	cmd := exec.Command(filepath.Join(l.bin, name), args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = drain
	// A group of its own: Ctrl-C in a terminal goes to the launcher alone, which knows the order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := l.starter.start(cmd); err != nil {
		return ending{code: daemon.ExitFailure, how: err.Error()}
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the process state says more
		close(ended)
	}()
	l.await(ctx, name, cmd.Process, ended)
	out.flush()
	return ending{code: cmd.ProcessState.ExitCode(), how: cmd.ProcessState.String(), words: out.words}
}

// await returns when the process has ended.
func (l *launcher) await(ctx context.Context, name string, p *os.Process, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	_ = p.Signal(syscall.SIGTERM) // it may have ended just now
	patience := time.NewTimer(stopTimeout)
	defer patience.Stop()
	select {
	case <-ended:
		return
	case <-l.kill:
	case <-patience.C:
		l.console.say("%s: does not stop, killed after %s", name, stopTimeout)
	}
	offspring := descendants(p.Pid)
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	for _, pid := range offspring { // agents have groups of their own
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-ended
}

// descendants are the processes that a process has started, and those started by them.
func descendants(pid int) (all []int) {
	entries, _ := os.ReadDir("/proc") // without it there is nobody to find
	children := map[int][]int{}
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat")) // empty if it is gone
		// pid (name) state ppid …; the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	for found := children[pid]; len(found) > 0; found = found[1:] {
		all = append(all, found[0])
		found = append(found, children[found[0]]...)
	}
	return all
}
