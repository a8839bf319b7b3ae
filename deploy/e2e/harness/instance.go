// Package harness runs arizuko's programs as processes of their own, on a data folder and a
// loopback address of their own, so that they can be watched, killed and started again.
package harness

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lookEvery is how often something awaited is looked at.
const lookEvery = 10 * time.Millisecond

// ports of the daemons, as they are without configuration.
var ports = map[string]string{
	"gated": "8080", "routd": "8081", "onbod": "8082", "dashd": "8083", "teled": "8091", "discd": "8092", "slakd": "8093",
}

// Build makes programs in a new folder. tags are build tags, "" for none; packages are import
// paths.
func Build(tags string, packages ...string) (bin string, err error) {
	if bin, err = os.MkdirTemp("", "arizuko-bin"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", slices.Concat([]string{"build", "-tags", tags, "-o", bin + "/"}, packages)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("go build: %w\n%s", err, out), os.RemoveAll(bin))
	}
	return bin, nil
}

// Instance is a data folder with the daemons on it. It belongs to one goroutine.
type Instance struct {
	Data string   // the data folder
	Host string   // the address all daemons listen on, without a port
	Env  []string // of every program, to be added to before they start

	bin       string
	processes map[string]*Process
}

// New makes an empty data folder for the programs of a folder.
func New(bin string) (*Instance, error) {
	return NewIn("", bin) // the system's own has a path short enough for the sockets
}

// NewIn is New with the folder to make the data folder in, the system's own for temporary files if
// it is "".
func NewIn(parent, bin string) (*Instance, error) {
	data, err := os.MkdirTemp(parent, "arizuko")
	if err != nil {
		return nil, err
	}
	// Not any free port, so that it can stay the same over restarts.
	sum := crc32.ChecksumIEEE([]byte(data))
	i := &Instance{
		Data: data, Host: fmt.Sprintf("127.%d.%d.%d", 64|sum>>16&63, sum>>8&255, 1+sum%254),
		bin: bin, processes: map[string]*Process{},
	}
	i.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + data, "TZ=UTC", "ARIZUKO_DATA=" + data}
	for name, port := range ports {
		i.Env = append(i.Env, strings.ToUpper(name)+"_ADDR="+i.Host+":"+port)
	}
	return i, nil
}

// Program is the path of a program.
func (i *Instance) Program(name string) string { return filepath.Join(i.bin, name) }

// Database is the path of the database.
func (i *Instance) Database() string { return filepath.Join(i.Data, "arizuko.db") }

// URL is where a daemon answers.
func (i *Instance) URL(name string) string { return "http://" + i.Host + ":" + ports[name] }

// Secret is what daemons and operators show each other.
func (i *Instance) Secret() (string, error) {
	secret, err := os.ReadFile(filepath.Join(i.Data, "secret"))
	return strings.TrimSpace(string(secret)), err
}

// Command is a program to be run in the instance's environment.
func (i *Instance) Command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(i.Program(program), args...)
	cmd.Env, cmd.Dir = i.Env, i.Data
	return cmd
}

// Migrate makes the database or brings it up to date.
func (i *Instance) Migrate() error {
	if out, err := i.Command("migrate", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("migrate up: %w\n%s", err, out)
	}
	return nil
}

// Process is one start of a daemon.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts a daemon that does not run, with more of the environment, and does not wait for
// it. It dies with us.
func (i *Instance) Start(name string, env ...string) error {
	log, err := os.OpenFile(i.logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p := &Process{cmd: i.Command(name), done: make(chan struct{})}
	p.cmd.Env = slices.Concat(i.Env, env)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.cmd.Wait() // State tells how it ended
		close(p.done)
	}()
	i.processes[name] = p
	return nil
}

// Process is the last start of a daemon, nil if there was none.
func (i *Instance) Process(name string) *Process { return i.processes[name] }

// Started lists the daemons that were ever started.
func (i *Instance) Started() (names []string) {
	for name := range i.processes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Running says whether a daemon runs.
func (i *Instance) Running(name string) bool {
	p := i.processes[name]
	return p != nil && p.Running()
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running says whether the process is still there.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// State is how a process that is gone has ended.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Killed says whether a process that is gone died of SIGKILL.
func (p *Process) Killed() bool {
	status, ok := p.State().Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Signal sends a signal to a process that may be gone already.
func (p *Process) Signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s to process %d: %w", signal, p.PID(), err)
	}
	return nil
}

// Kill ends a daemon without any warning, if it runs.
func (i *Instance) Kill(name string) error {
	p := i.processes[name]
	if p == nil {
		return nil
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop asks a daemon to end and waits until it has. Its exit code must be 0.
func (i *Instance) Stop(ctx context.Context, name string) error {
	p := i.processes[name]
	if p == nil {
		return fmt.Errorf("%s was never started", name)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s does not stop: %w", name, ctx.Err())
	case <-p.done:
	}
	if code := p.State().ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with %s", name, p.State())
	}
	return nil
}

// AwaitReady returns when a daemon says that it is ready, or has ended.
func (i *Instance) AwaitReady(ctx context.Context, name string) error {
	return Await(ctx, name+" to be ready", func() (bool, error) {
		if i.processes[name] == nil {
			return false, fmt.Errorf("%s was never started", name)
		}
		if !i.Running(name) {
			return false, fmt.Errorf("%s ended: %s", name, i.processes[name].State())
		}
		status, _ := i.Readiness(ctx, name)
		return status == http.StatusOK, nil
	})
}

// Await returns when something holds, or can't any more.
func Await(ctx context.Context, what string, holds func() (bool, error)) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, ctx.Err())
		case <-look.C:
		}
	}
}

// Strays are the processes that work in groups' folders, as agents do.
func (i *Instance) Strays() (pids []int, err error) {
	entries, err := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err == nil && strings.HasPrefix(dir, filepath.Join(i.Data, "groups")+"/") {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// Close kills what still runs, agents included, and removes the data folder.
func (i *Instance) Close() error {
	var errs []error
	for name := range i.processes {
		errs = append(errs, i.Kill(name))
	}
	strays, err := i.Strays()
	for _, pid := range strays {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have gone by itself
	}
	return errors.Join(append(errs, err, os.RemoveAll(i.Data))...)
}
