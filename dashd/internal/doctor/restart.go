package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/facts"
)

// launcher has the name of the lock that the program holds which starts all daemons, and starts one again that ends.
const launcher = "launcher"

// launched reports whether a daemon runs and the launcher has started it.
func (l *locks) launched(name string) bool {
	pid, parent := l.daemon(name), l.daemon(launcher)
	if pid == 0 || parent == 0 {
		return false
	}
	fs, err := procfs.NewFS(l.proc)
	if err != nil {
		return false
	}
	p, err := fs.Proc(pid)
	if err != nil {
		return false
	}
	stat, err := p.Stat()
	return err == nil && stat.PPID == parent
}

const (
	stopTime = 10 * time.Second // above the 8 s that a daemon takes for a clean stop
	stopLook = 50 * time.Millisecond
)

// Restart ends a daemon, which the launcher then starts again; of one that the launcher has not started it is an
// apierr.Conflict. A daemon that does not stop within 10 s is killed: nothing is lost. Restart does not wait for the
// new process, nor for the end of this one.
func Restart(ctx context.Context, base config.Base, name string) error {
	return end(ctx, base, name, stopTime)
}

func end(ctx context.Context, base config.Base, name string, patience time.Duration) error {
	l := readLocks("/proc", base, facts.Daemons{name: nil})
	if !l.launched(name) {
		return apierr.New(apierr.Conflict, "%s was not started by the launcher of `make run` on this machine: "+
			"restart it where it was started, such as with `docker compose restart %[1]s` or "+
			"`systemctl restart arizuko@%[1]s`", name)
	}
	pid := l.daemon(name)
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("process %d of %s: %w", pid, name, err)
	}
	defer unix.Close(process)
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} { // a stopped process gets the first by the second
		if err := unix.PidfdSendSignal(process, signal, nil, 0); errors.Is(err, unix.EPERM) {
			return fmt.Errorf("process %d of %s: %w", pid, name, err)
		}
	}
	if pid == os.Getpid() || ended(ctx, process, patience) {
		return nil
	}
	_ = unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0) // it may have just ended
	if !ended(ctx, process, stopTime) {
		return apierr.New(apierr.Unavailable, "process %d of %s does not end, even when it is killed", pid, name)
	}
	return nil
}

// ended waits for the end of a process, given as its file.
func ended(ctx context.Context, process int, within time.Duration) bool {
	for until := time.Now().Add(within); ctx.Err() == nil && time.Now().Before(until); {
		poll := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, int(stopLook.Milliseconds())); n > 0 && err == nil {
			return true
		}
	}
	return false
}
