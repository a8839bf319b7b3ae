package harness

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/store"
)

// LauncherFixture is an instance under test whose daemons are started by the launcher. Its methods
// fail the test and belong on the test's goroutine.
type LauncherFixture struct {
	T        testing.TB
	Instance *Instance
}

// NewLauncherFixture makes an instance for the programs in bin, with env added to their
// environment. Nothing runs, and there is no data folder. At the end of the test all its processes
// are killed.
func NewLauncherFixture(t testing.TB, bin string, env ...string) *LauncherFixture {
	t.Helper()
	i, err := New(bin)
	if err != nil {
		t.Fatal(err)
	}
	i.Env = append(i.Env, env...)
	f := &LauncherFixture{T: t, Instance: i}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	f.ok(os.Remove(i.Data))
	return f
}

func (f *LauncherFixture) ok(err error) {
	f.T.Helper()
	if err != nil {
		f.T.Fatal(err)
	}
}

// Until waits until a condition holds.
func (f *LauncherFixture) Until(what string, holds func() bool) {
	f.T.Helper()
	ctx, cancel := timeout(maxWait)
	defer cancel()
	f.ok(Await(ctx, what, func() (bool, error) { return holds(), nil }))
}

// Processes are the process ids of the instance's processes that run a program, "" being any.
func (f *LauncherFixture) Processes(program string) []int {
	f.T.Helper()
	pids, err := f.Instance.Processes(program)
	f.ok(err)
	return pids
}

// Signal sends a signal to a daemon and returns its process id.
func (f *LauncherFixture) Signal(daemon string, signal syscall.Signal) (pid int) {
	f.T.Helper()
	pid = f.process(daemon)
	if err := syscall.Kill(pid, signal); err != nil {
		f.T.Fatalf("send %s to %s: %v", signal, daemon, err)
	}
	return pid
}

// process is the id of a daemon's process, which must run once.
func (f *LauncherFixture) process(daemon string) int {
	f.T.Helper()
	pids := f.Processes(daemon)
	if len(pids) != 1 {
		f.T.Fatalf("%s runs as processes %v, want one", daemon, pids)
	}
	return pids[0]
}

// Kill kills a daemon. The launcher restarts it.
func (f *LauncherFixture) Kill(daemon string) {
	f.T.Helper()
	pid := f.Signal(daemon, syscall.SIGKILL)
	f.Until(daemon+" to end", func() bool { return !slices.Contains(f.Processes(daemon), pid) })
}

// Suspend stops a daemon until it gets a SIGCONT, at a moment when it holds no lock of the database.
func (f *LauncherFixture) Suspend(daemon string) {
	f.T.Helper()
	st, err := store.Open(f.T.Context(), store.Options{Path: f.Instance.Database()})
	f.ok(err)
	defer st.Close()
	f.ok(suspend(st, f.process(daemon)))
}

// Run runs a program in the instance's environment and returns its output.
func (f *LauncherFixture) Run(program string, args ...string) string {
	f.T.Helper()
	out, err := f.Instance.Command(program, args...).CombinedOutput()
	if err != nil {
		f.T.Fatalf("%s %s: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// Query returns the rows of a query, columns joined by blanks.
func (f *LauncherFixture) Query(query string, args ...any) []string {
	f.T.Helper()
	db := f.database()
	defer db.Close()
	all, err := invariants.Lines(db, query, args...)
	if err != nil {
		f.T.Fatalf("%s: %v", query, err)
	}
	return all
}

// Exec changes the database.
func (f *LauncherFixture) Exec(query string, args ...any) {
	f.T.Helper()
	db := f.database()
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		f.T.Fatalf("%s: %v", query, err)
	}
}

// WaitIdle waits until every row is decided, every turn has ended and every answer is delivered.
func (f *LauncherFixture) WaitIdle() {
	f.T.Helper()
	f.Until("the instance to be idle", func() bool { return len(f.Query(unfinishedOrUndelivered)) == 0 })
}

// database opens the database for one query: the launcher may replace it between two.
func (f *LauncherFixture) database() *sql.DB {
	f.T.Helper()
	db, err := sql.Open("sqlite3", "file:"+f.Instance.Database()+"?_busy_timeout=20000&_txlock=immediate")
	f.ok(err)
	return db
}

// Launcher is a running launcher.
type Launcher struct {
	Process *Process

	f   *LauncherFixture
	dir string // of its output
}

// Launch starts the launcher and does not wait until it is ready. The end of the test kills it.
func (f *LauncherFixture) Launch(args ...string) *Launcher {
	f.T.Helper()
	dir, err := os.MkdirTemp(f.Instance.Dir, "launcher")
	f.ok(err)
	l := &Launcher{f: f, dir: dir}
	stdout, err := os.Create(l.path("stdout"))
	f.ok(err)
	defer stdout.Close()
	stderr, err := os.Create(l.path("stderr"))
	f.ok(err)
	defer stderr.Close()
	cmd := f.Instance.Command("launcher", args...)
	cmd.Dir = f.Instance.Dir // the data folder may not exist yet
	l.Process, err = startProcess(cmd, stdout, stderr)
	f.ok(err)
	f.T.Cleanup(l.kill)
	return l
}

func (l *Launcher) kill() {
	_ = l.Process.Signal(syscall.SIGKILL) // it may have ended
	<-l.Process.Done()
	if l.f.T.Failed() {
		text := l.Stderr()
		l.f.T.Logf("%s: stdout of the launcher:\n%s\nend of its stderr:\n%s", l.f.Instance.Host, l.Stdout(),
			text[max(0, len(text)-logTail):])
	}
}

func (l *Launcher) path(name string) string { return filepath.Join(l.dir, name) }

// Stdout is the launcher's stdout so far.
func (l *Launcher) Stdout() string { return l.read("stdout") }

// Stderr is the stderr of the launcher and its daemons so far.
func (l *Launcher) Stderr() string { return l.read("stderr") }

func (l *Launcher) read(name string) string {
	text, err := os.ReadFile(l.path(name))
	if err != nil {
		l.f.T.Error(err)
	}
	return string(text)
}

// Signal sends a signal to the launcher.
func (l *Launcher) Signal(signal syscall.Signal) {
	l.f.T.Helper()
	l.f.ok(l.Process.Signal(signal))
}

// WaitOutput waits until the launcher has printed a text on stderr.
func (l *Launcher) WaitOutput(text string) {
	l.f.T.Helper()
	l.f.Until("the output "+strconv.Quote(text), func() bool { return strings.Contains(l.Stderr(), text) })
}

// WaitReady waits for the launcher's line on stdout and returns it.
func (l *Launcher) WaitReady() string {
	l.f.T.Helper()
	l.f.Until("the launcher to be ready", func() bool {
		if !l.Process.Running() {
			l.f.T.Fatalf("the launcher ended with %s", l.Process.State())
		}
		return strings.HasSuffix(l.Stdout(), "\n")
	})
	return l.Stdout()
}

// WantEnd waits until the launcher has ended and fails the test unless it has that exit code and
// no process of the instance is left.
func (l *Launcher) WantEnd(code int) {
	l.f.T.Helper()
	l.f.Until("the launcher to end", func() bool { return !l.Process.Running() })
	if got := l.Process.State().ExitCode(); got != code {
		l.f.T.Errorf("the launcher ended with exit code %d, want %d", got, code)
	}
	if left := l.f.Processes(""); len(left) > 0 {
		l.f.T.Errorf("processes %v are left", left)
	}
}
