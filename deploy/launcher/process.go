package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"arizuko/pkg/daemon"
)

const (
	// stopTimeout is above the 8 s that a daemon takes for a clean stop.
	stopTimeout = 10 * time.Second
	// drainTimeout is how long the launcher waits for output that a child of the program holds open.
	drainTimeout = time.Second
)

// ending is how a program ended.
type ending struct {
	code     int    // exit code, -1 after a signal
	how      string // as shown to operators: "exit status 1", "signal: killed"
	lastLine string // the last line it printed
}

func (e ending) String() string {
	if e.lastLine == "" {
		return "ended with " + e.how
	}
	return fmt.Sprintf("ended with %s, last output: %s", e.how, e.lastLine)
}

// execute runs a program of the bin folder until it ends. When ctx ends, it gets SIGTERM. It is killed
// with all its descendants after stopTimeout or when kill is closed.
func (l *launcher) execute(ctx context.Context, s service, args ...string) ending {
	out := &source{console: l.console, name: s.name}
	cmd := exec.Command(filepath.Join(l.bin, s.program()), args...)
	cmd.Env = s.environ(cmd.Environ())
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(cmd.Env, "DASH_PRINT_LINK=false") // the launcher prints the link, once
	cmd.WaitDelay = drainTimeout
	// A separate group: Ctrl-C in a terminal goes to the launcher alone, which knows the order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	// The kernel sends the parent-death signal when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return ending{code: daemon.ExitFailure, how: err.Error()}
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the process state has more
		close(ended)
	}()
	l.await(ctx, s.name, cmd.Process, ended)
	out.flush()
	return ending{code: cmd.ProcessState.ExitCode(), how: cmd.ProcessState.String(), lastLine: out.lastLine}
}

// await waits until the process has ended, and stops it when ctx ends.
func (l *launcher) await(ctx context.Context, name string, p *os.Process, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	_ = p.Signal(syscall.SIGTERM) // it may have just ended
	select {
	case <-ended:
		return
	case <-l.kill:
	case <-time.After(stopTimeout):
		l.console.printf("%s: did not stop within %s, killed", name, stopTimeout)
	}
	children := descendants(p.Pid)
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	for _, pid := range children { // agents have their own groups
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-ended
}

// descendants are the children of a process, their children, and so on.
func descendants(pid int) (all []int) {
	procs, _ := procfs.AllProcs() // without /proc none are found
	children := map[int][]int{}
	for _, p := range procs {
		if stat, err := p.Stat(); err == nil { // else it has ended
			children[stat.PPID] = append(children[stat.PPID], p.PID)
		}
	}
	for found := children[pid]; len(found) > 0; found = found[1:] {
		all = append(all, found[0])
		found = append(found, children[found[0]]...)
	}
	return all
}
