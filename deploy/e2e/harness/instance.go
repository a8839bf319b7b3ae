// Package harness starts and observes instances: a data folder with daemons running on it, each a
// separate process. An Instance returns errors: the load generators and the benchmarks use it. A
// Fixture is an Instance under test: its methods fail the test.
package harness

import (
	"bytes"
	"cmp"
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

	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
)

// pollInterval is how often an awaited condition is checked.
const pollInterval = 10 * time.Millisecond

// ports are the default ports of the daemons.
var ports = map[string]string{
	"gated": "8080", "routd": "8081", "onbod": "8082", "dashd": "8083", "teled": "8091", "discd": "8092",
	"slakd": "8093",
}

// Instance is a data folder with daemons running on it. It is not safe for concurrent use.
type Instance struct {
	Dir  string   // the parent of the data folder, with the daemons' logs
	Data string   // the data folder
	Host string   // the address that all daemons listen on, without a port
	Env  []string // of every program; to be extended before they start

	bin       string
	database  string              // its URL, "" for a file in the data folder
	user      *syscall.Credential // of further starts and commands, nil for this process's
	processes map[string]*Process
}

// New makes an empty data folder for the programs in bin.
func New(bin string) (*Instance, error) {
	return NewIn("", bin) // the system's folder has a path that is short enough for sockets
}

// NewIn is New with the folder to make the data folder in, "" being the system's folder for
// temporary files.
func NewIn(parent, bin string) (*Instance, error) {
	dir, err := os.MkdirTemp(parent, "arizuko")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// Its own address with fixed ports: they stay the same over restarts, and the address is
	// a separate origin to a browser.
	sum := crc32.ChecksumIEEE([]byte(dir))
	i := &Instance{
		Dir: dir, Data: data, Host: fmt.Sprintf("127.%d.%d.%d", 64|sum>>16&63, sum>>8&255, 1+sum%254),
		bin: bin, processes: map[string]*Process{},
	}
	i.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + data, "TZ=UTC", "ARIZUKO_DATA=" + data}
	// Messages get no mark for waiting, unless a test is about it: the messages of a chat would depend on how busy the
	// machine is.
	i.Env = append(i.Env, "GATED_MCP_ADDR="+i.Host+":8084", "EGRESS_ADDR="+i.Host+":8086",
		"EGRESS_PROXY_ADDR="+i.Host+":8085", "WAIT_MARK=0")
	for name, port := range ports {
		i.Env = append(i.Env, strings.ToUpper(name)+"_ADDR="+i.Host+":"+port)
	}
	return i, nil
}

// Program is the path of a program.
func (i *Instance) Program(name string) string { return filepath.Join(i.bin, name) }

// UsePrograms makes further starts run the programs in another folder, as an upgrade does. Running ones stay.
func (i *Instance) UsePrograms(bin string) { i.bin = bin }

// Database is the path or URL that the store opens: of a file, or of UseDatabase.
func (i *Instance) Database() string { return cmp.Or(i.database, filepath.Join(i.Data, "arizuko.db")) }

// UseDatabase makes programs that start from now on use a database on a server, which others drop.
func (i *Instance) UseDatabase(url string) {
	i.database = url
	i.Env = append(i.Env, "ARIZUKO_DB="+url)
}

// Addr is the address that a daemon listens on, as host:port; one of a further account has the variable with its
// suffix.
func (i *Instance) Addr(name string) string {
	if a := i.account(name); a != nil {
		return a.Variable(a.AddrVariable())
	}
	return i.Host + ":" + ports[name]
}

// account is the further account of a daemon that ACCOUNTS names in Env, nil for others.
func (i *Instance) account(name string) *daemon.Account {
	accounts, _ := daemon.Accounts(i.Env) // an invalid one names no daemon
	at := slices.IndexFunc(accounts, func(a daemon.Account) bool { return a.Daemon == name })
	if at < 0 {
		return nil
	}
	return &accounts[at]
}

// URL is the base URL of a daemon.
func (i *Instance) URL(name string) string { return "http://" + i.Addr(name) }

// Secret is the secret that daemons and operators share.
func (i *Instance) Secret() (string, error) {
	secret, err := os.ReadFile(filepath.Join(i.Data, "secret"))
	return strings.TrimSpace(string(secret)), err
}

// Client is a client of a daemon's HTTP API that signs with the secret.
func (i *Instance) Client(daemon string) (*httpx.Client, error) {
	secret, err := i.Secret()
	return httpx.NewClient(daemon, i.URL(daemon), secret), err
}

// Command is a program to be run in the instance's environment.
func (i *Instance) Command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(i.Program(program), args...)
	cmd.Env, cmd.Dir = i.Env, i.Data
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: i.user}
	return cmd
}

// RunAs makes further starts and commands run as this user and group, without further groups, which
// only root can do. The user can reach the programs and the data folder; whose that is stays.
func (i *Instance) RunAs(uid, gid uint32) error {
	i.user = &syscall.Credential{Uid: uid, Gid: gid}
	return errors.Join(os.Chmod(i.Dir, 0o711), os.Chmod(i.bin, 0o711))
}

// Migrate creates the database or upgrades its schema.
func (i *Instance) Migrate() error {
	if out, err := i.Command("migrate", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("migrate up: %w\n%s", err, out)
	}
	return nil
}

// Start starts a daemon that does not run, with env added to its environment; one of a further account, such as
// teled+work, has the environment that the launcher would give it. It does not wait
// until the daemon is ready. The daemon is killed when this process ends.
func (i *Instance) Start(name string, env ...string) error {
	log, err := os.OpenFile(i.logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	program, environ := name, i.Env
	if a := i.account(name); a != nil {
		program, environ = a.Name, a.Environ
	}
	cmd := i.Command(program)
	cmd.Env = slices.Concat(environ, env)
	p, err := startProcess(cmd, log, log)
	if err != nil {
		return err
	}
	i.processes[name] = p
	return nil
}

// Process is the last start of a daemon, nil if it was never started.
func (i *Instance) Process(name string) *Process { return i.processes[name] }

// Started lists the daemons that were ever started.
func (i *Instance) Started() (names []string) {
	for name := range i.processes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Running reports whether a daemon runs.
func (i *Instance) Running(name string) bool {
	p := i.processes[name]
	return p != nil && p.Running()
}

// Kill kills a daemon, if it runs, and waits until it has ended.
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

// Stop sends a daemon SIGTERM and waits until it has ended. Its exit code must be 0.
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

// AwaitReady waits until a daemon is ready. It returns an error at once if the daemon has ended.
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

// StartReady starts a daemon that does not run, with env added to its environment, and waits until it
// is ready. The error contains the end of its log.
func (i *Instance) StartReady(ctx context.Context, name string, env ...string) error {
	if err := i.Start(name, env...); err != nil {
		return err
	}
	if err := i.AwaitReady(ctx, name); err != nil {
		return fmt.Errorf("%w\nlog of %s:\n%s", err, name, i.LogTail(name, logTail))
	}
	return nil
}

// stopOrder is the daemons that were started, in the order in which they are stopped: adapters first, of which those of
// further accounts are not in the suite.
func (i *Instance) stopOrder() []string {
	names, order := i.Started(), daemon.Suite()
	slices.Reverse(order)
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return names
}

// StopAll stops all daemons that were started, adapters first, and waits until they have ended. The
// exit code of each must be 0, also of those that have ended before.
func (i *Instance) StopAll(ctx context.Context) error {
	var errs []error
	for _, name := range i.stopOrder() {
		errs = append(errs, i.Stop(ctx, name))
	}
	return errors.Join(errs...)
}

// Await waits until a condition holds, or returns an error.
func Await(ctx context.Context, what string, holds func() (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// Agents are the processes that work in groups' folders, as agents do.
func (i *Instance) Agents() (pids []int, err error) {
	all, err := readProcesses()
	for _, p := range all {
		if strings.HasPrefix(p.dir, filepath.Join(i.Data, "groups")+"/") {
			pids = append(pids, p.pid)
		}
	}
	return pids, err
}

// Processes are the processes of this instance that run a program, "" being any: those with the
// data folder in their environment, and agents, which have not, but work below it.
func (i *Instance) Processes(program string) (pids []int, err error) {
	all, err := readProcesses()
	for _, p := range all {
		ours := bytes.Contains(p.env, []byte(i.Data+"\x00")) || strings.HasPrefix(p.dir, i.Data+"/")
		if ours && (program == "" || filepath.Base(p.program) == program) {
			pids = append(pids, p.pid)
		}
	}
	return pids, err
}

// processInfo is the part of /proc about a process. All but pid are empty for zombies and for
// processes that have just ended.
type processInfo struct {
	pid     int
	env     []byte
	program string
	dir     string
}

func readProcesses() (all []processInfo, err error) {
	entries, err := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		args, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		dir, _ := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		program, _, _ := strings.Cut(string(args), "\x00")
		all = append(all, processInfo{pid, env, program, dir})
	}
	return all, err
}

// Close kills all processes of the instance and removes its folders.
func (i *Instance) Close() error {
	var errs []error
	for name := range i.processes {
		errs = append(errs, i.Kill(name))
	}
	left, err := i.Processes("")
	for _, pid := range left {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have ended by itself
	}
	return errors.Join(append(errs, err, os.RemoveAll(i.Dir))...)
}
