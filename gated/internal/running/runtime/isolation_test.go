package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/need"
)

func needBwrap(t *testing.T) {
	t.Helper()
	need.Program(t, "bwrap", "bubblewrap")
}

// fixture is a data folder with files that an agent must not read.
type fixture struct {
	data string
	spec Spec // of an agent in the group main/eng
}

func newFixture(t testing.TB, attacker string) fixture {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	for _, file := range []string{
		"arizuko.db", "secret", "media/202601/face.jpg", "logs/main/run-1.log", "run/gated.sock",
		"groups/other/notes", "groups/main/notes", "groups/main+ops/notes", "groups/main+eng+child/notes", "groups/main+eng+a+b/notes",
		"groups/main+eng/notes", "groups/main+eng/inbox/1-1-cat.jpg",
	} {
		path := filepath.Join(data, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	group := filepath.Join(data, "groups", "main+eng")
	if err := os.Symlink("../../secret", filepath.Join(group, "link")); err != nil {
		t.Fatal(err)
	}
	return fixture{data, Spec{
		RunID: 7, User: ownedBy(t, group, 59002), Command: "exec '" + attacker + "'", Image: attackerImage, Dir: group, Folder: "main/eng",
		LogPath: filepath.Join(data, "logs", "main", "run-7.log"),
		Env:     []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "LANG=C", "API_KEY=k-value"},
	}}
}

// ownedBy gives a folder and its content to an agent's user if gated is root, and
// returns the user of the run.
func ownedBy(t testing.TB, dir string, uid int) User {
	t.Helper()
	if os.Getuid() != 0 {
		return User{}
	}
	u := User{UID: uid, GID: uid + 100}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, u.UID, u.GID))
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (e fixture) temp() string { return filepath.Join(e.data, "run", "tmp") }

// runtimeTest runs the attacker in one runtime.
type runtimeTest struct {
	name     string // of the runtime in a group configuration
	attacker string // the agent
	engine   *docker.Engine
}

// open makes the runtime for a fixture. With docker the image has the program.
func (tr runtimeTest) open(e fixture) testRuntime {
	// The data folder is hidden even inside a readable folder.
	readable := []string{filepath.Dir(tr.attacker), filepath.Dir(e.data)}
	switch tr.name {
	case "process":
		return testRuntime{Process{Temp: e.temp(), Readable: readable}, func(*Spec) {}}
	case "bwrap":
		return testRuntime{Sandbox{Temp: e.temp(), Data: e.data, Readable: readable}, func(*Spec) {}}
	}
	return testRuntime{
		Docker{Client: "docker", Environ: tr.engine.Environ(), Instance: InstanceOf(e.data), Network: "none"},
		func(s *Spec) { s.Command = "" },
	}
}

func (tr runtimeTest) run(t *testing.T) {
	t.Setenv("TELEGRAM_BOT_TOKEN", "t-value")
	for name, test := range map[string]func(*testing.T, testRuntime, fixture){
		"own files": tr.ownFiles, "other files": tr.otherFiles, "other groups": tr.otherGroups, "folder renamed during a start": tr.renamedDuringStart,
		"detached child": tr.detachedChild,
		"stop":           stopping, "exit code": exitCode, "orphan": tr.orphaned, "check": checks, "program missing": tr.programMissing,
		"pipes closed": tr.pipesClosed,
	} {
		t.Run(name, func(t *testing.T) {
			e := newFixture(t, tr.attacker)
			test(t, tr.open(e), e)
		})
	}
}

func TestProcessRuntime(t *testing.T) {
	runtimeTest{name: "process", attacker: buildAttacker(t)}.run(t)
}

func TestSandboxRuntime(t *testing.T) {
	needBwrap(t)
	runtimeTest{name: "bwrap", attacker: buildAttacker(t)}.run(t)
}

func TestDockerRuntime(t *testing.T) {
	tr := runtimeTest{name: "docker", attacker: buildAttacker(t), engine: docker.Start(t)}
	tr.engine.Import(t, attackerImage, map[string]string{"agent": tr.attacker})
	tr.run(t)
	tr.containers(t)
	if left := tr.engine.Docker(t, "ps", "--all", "--quiet"); left != "" {
		t.Errorf("containers are left: %s", left)
	}
}

// ownFiles checks the files that the agent can use in every runtime, and that it inherits no
// file that gated has open.
func (tr runtimeTest) ownFiles(t *testing.T, w testRuntime, e fixture) {
	left, err := syscall.Open(filepath.Join(e.data, "secret"), syscall.O_RDONLY, 0) // unlike os.Open, for children too
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(left) }()
	c := w.start(t, e.spec)
	temp := strings.TrimPrefix(c.ask("env TMPDIR"), "ok ")
	c.allowed(map[string]string{
		"read notes": "content of groups/main+eng/notes", "read inbox/1-1-cat.jpg": "content of groups/main+eng/inbox/1-1-cat.jpg",
		"write new": "", "write " + temp + "/new": "",
		"files": "", "env API_KEY": "k-value", "env LANG": "C", "env TELEGRAM_BOT_TOKEN": "",
	})
	if tr.name == "bwrap" {
		c.allowed(map[string]string{"read /tmp/new": "attacked", "env HOME": filepath.Join(e.data, "groups/main/eng")})
	}
	if exit := c.finish(); exit.Code != 0 || exit.Err != nil {
		t.Errorf("exit %+v", exit)
	}
	if b, err := os.ReadFile(filepath.Join(e.spec.Dir, "new")); err != nil || string(b) != "attacked" {
		t.Errorf("what it wrote: %q, %v", b, err)
	}
	if left, err := os.ReadDir(e.temp()); err == nil && len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

func (tr runtimeTest) otherFiles(t *testing.T, w testRuntime, e fixture) {
	if tr.name == "process" && e.spec.User.IsZero() {
		return // such agents may do what gated may
	}
	c := w.start(t, e.spec)
	for _, file := range []string{
		"arizuko.db", "secret", "media/202601/face.jpg", "logs/main/run-1.log", "groups/other/notes",
	} {
		c.refused("read "+filepath.Join(e.data, file), "write "+filepath.Join(e.data, file))
	}
	c.refused("read link", "read ../other/notes", "write ../planted",
		"write /etc/planted", "write /usr/planted", "write /planted", "read /etc/shadow", "list /root",
		"write "+filepath.Join(e.data, "planted"),
		"write /proc/sys/kernel/domainname") // its own at worst, unlike the rest of /proc/sys
	if answer := c.ask("list " + e.data); !strings.HasPrefix(answer, "no ") && answer != "ok groups" && answer != "ok groups run" {
		t.Errorf("the data folder: %q", answer)
	}
	gated := os.Getpid()
	c.refused(fmt.Sprintf("signal %d", gated), fmt.Sprintf("trace %d", gated))
	for _, path := range []string{fmt.Sprintf("/proc/%d/environ", gated), "/proc/1/environ", "/proc/self/environ", "/proc/1/cmdline"} {
		if answer := c.ask("read " + path); strings.Contains(answer, "t-value") || strings.Contains(answer, "runtime.test") {
			t.Errorf("%s: %q", path, answer)
		}
	}
	status := c.ask("read /proc/self/status")
	for _, want := range []string{"CapEff:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in its status:\n%s", want, status)
		}
	}
	if !e.spec.User.IsZero() {
		tr.unprivileged(t, c, e, status)
	}
	if b, err := os.ReadFile(filepath.Join(e.data, "secret")); err != nil || string(b) != "content of secret" {
		t.Errorf("the secret is %q now, %v", b, err)
	}
}

// unprivileged checks an agent of root: it has its own user and nothing of root.
func (tr runtimeTest) unprivileged(t *testing.T, c agentRun, e fixture, status string) {
	u := e.spec.User
	for _, want := range []string{
		fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", u.UID), fmt.Sprintf("Gid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", u.GID),
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in its status:\n%s", want, status)
		}
	}
	for _, device := range []string{"/dev/null", "/dev/full", "/dev/urandom", "/dev/tty"} {
		before, err := os.Stat(device)
		if err != nil {
			continue
		}
		c.refused("chmod " + device)
		if after, err := os.Stat(device); err != nil || after.Mode() != before.Mode() {
			_ = os.Chmod(device, before.Mode()) // other programs of this machine need it
			t.Errorf("%s has mode %s now, %v", device, after.Mode(), err)
		}
	}
	c.ask("write left")
	c.ask("chmod left")
	var left syscall.Stat_t
	if err := syscall.Stat(filepath.Join(e.spec.Dir, "left"), &left); err != nil || int(left.Uid) != u.UID {
		t.Errorf("a setuid program of user %d is left, %v", left.Uid, err)
	}
	// A process of gated's session could write into gated's terminal.
	if tr.name == "docker" {
		return // the session of its client is not the agent's
	}
	ours, err := unix.Getsid(0)
	session, sessionErr := unix.Getsid(c.p.PID())
	if err != nil || sessionErr != nil || session == ours {
		t.Errorf("session %d, gated's %d, %v, %v", session, ours, err, sessionErr)
	}
}

// detachedChild tries to leave a process that no signal to the group reaches.
func (tr runtimeTest) detachedChild(t *testing.T, w testRuntime, e fixture) {
	if tr.name == "process" {
		return // nothing ends a process that leaves its group
	}
	name := "detached-" + rand.Text() // another run of the tests may have one at the same time
	for what, end := range map[string]func(agentRun){
		"by itself": func(c agentRun) { c.finish() },
		"stopped": func(c agentRun) {
			c.ask("ignore-term")
			c.p.Stop(10 * time.Millisecond)
			c.finish()
		},
	} {
		c := w.start(t, e.spec)
		if answer := c.ask("detach " + name); answer != "ok " {
			t.Fatal(answer)
		}
		if !running(t, name) {
			t.Fatal("the child does not run")
		}
		if end(c); running(t, name) {
			t.Errorf("%s: a process outlived its run", what)
		}
	}
}

// running looks for a process with that argument.
func running(t *testing.T, arg string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(lines, func(path string) bool {
		b, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(b), arg)
	})
}

func stopping(t *testing.T, w testRuntime, e fixture) {
	t.Run("SIGTERM", func(t *testing.T) {
		c := w.start(t, e.spec)
		c.ask("ignore-term")
		c.ask("catch-term")
		c.p.terminate()
		results, _, exit := finish(t, c.p)
		if !slices.Equal(results, []string{"terminated"}) || exit.Code != 0 {
			t.Errorf("results %q, exit %+v", results, exit)
		}
	})
	t.Run("SIGKILL", func(t *testing.T) {
		c := w.start(t, e.spec)
		c.ask("ignore-term")
		c.p.Stop(50 * time.Millisecond)
		if _, _, exit := finish(t, c.p); exit.Signal != syscall.SIGKILL || exit.Err != nil {
			t.Errorf("exit %+v", exit)
		}
	})
	t.Run("context ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		spec := e.spec
		w.change(&spec)
		p, err := w.runtime.Start(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		c := agentRun{t, p}
		c.ask("ignore-term")
		cancel()
		if _, _, exit := finish(t, p); exit.Signal != syscall.SIGKILL {
			t.Errorf("exit %+v", exit)
		}
		if _, err := w.runtime.Start(ctx, spec); !errors.Is(err, context.Canceled) {
			t.Errorf("start when it has ended: %v", err)
		}
	})
}

func exitCode(t *testing.T, w testRuntime, e fixture) {
	c := w.start(t, e.spec)
	if err := c.p.Send([]byte("exit 7\n")); err != nil {
		t.Fatal(err)
	}
	if _, _, exit := finish(t, c.p); exit.Code != 7 || exit.Err != nil {
		t.Errorf("exit %+v", exit)
	}
}

// programMissing runs a program that is not there, by its path and by its name.
func (tr runtimeTest) programMissing(t *testing.T, w testRuntime, e fixture) {
	if tr.name == "docker" {
		return // see containers
	}
	spec := e.spec
	for _, command := range []string{"exec /nowhere/agent", "nosuchagent"} {
		spec.Command = command
		// It is the latter if the PATH has folders that are closed to the user.
		missing := regexp.MustCompile("not found|Permission denied")
		if exit := w.launch(t, spec).finish(); !isSetup(exit.Err) || !missing.MatchString(exit.Reason()) {
			t.Errorf("%s: %+v", command, exit)
		}
	}
}

// pipesClosed runs agents that close a pipe and stay. Docker's client keeps them open: there only the timeout of the
// run helps.
func (tr runtimeTest) pipesClosed(t *testing.T, w testRuntime, e fixture) {
	if tr.name == "docker" {
		return
	}
	spec := e.spec
	spec.OutputGrace = 50 * time.Millisecond
	spec.Command = script(frame("last"), "exec >&-", "exec sleep 1000")
	results, _, exit := finish(t, w.launch(t, spec).p)
	if !slices.Equal(results, []string{"last"}) || !exit.Mute || exit.Err != nil {
		t.Errorf("stdout: results %q, exit %+v", results, exit)
	}
	spec.Command = script("exec <&-", frame("up"), "exec sleep 1000")
	p := w.launch(t, spec).p
	next(t, p)
	_ = p.Send([]byte("lost\n"))
	select {
	case <-p.Deaf():
	case <-time.After(patience):
		t.Error("stdin: it is not known that the line is lost")
	}
}

func checks(t *testing.T, w testRuntime, e fixture) {
	if err := w.runtime.Check(t.Context(), e.spec); err != nil {
		t.Error(err)
	}
	wrong := e.spec
	wrong.Command, wrong.Image = "nosuchagent --fast", "nosuchimage:1"
	if err := w.runtime.Check(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("an agent that is not there: %v", err)
	}
	for _, spec := range []Spec{{Dir: e.spec.Dir, LogPath: e.spec.LogPath}} {
		_, err := w.runtime.Start(t.Context(), spec)
		if checkErr := w.runtime.Check(t.Context(), spec); !isSetup(err) || !isSetup(checkErr) {
			t.Errorf("without an agent: %v, check %v", err, checkErr)
		}
	}
}

func isSetup(err error) bool { return errors.As(err, new(*SetupError)) }

func TestCheck_ProgramMissing_IsASetupError(t *testing.T) {
	e := newFixture(t, "/bin/true")
	t.Setenv("PATH", t.TempDir())
	for name, r := range map[string]Runtime{
		"bubblewrap": Sandbox{Temp: e.temp(), Data: e.data},
		"docker":     Docker{Client: "docker"},
		"nothing":    Docker{},
	} {
		_, err := r.Start(t.Context(), e.spec)
		if checkErr := r.Check(t.Context(), e.spec); !isSetup(err) || !isSetup(checkErr) {
			t.Errorf("%s: %v, check %v", name, err, checkErr)
		}
	}
}
