package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/need"
)

// intruderImage is the image of the intruder.
const intruderImage = "intruder:1"

// buildIntruder makes the agent that tries to get out; static, so that it runs
// in an image of its own.
func buildIntruder(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "intruder")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/intruder")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func needBwrap(t *testing.T) {
	t.Helper()
	need.Program(t, "bwrap", "bubblewrap")
}

// estate is a data folder with things to steal.
type estate struct {
	data string
	spec Spec // of an agent in the group main
}

func newEstate(t testing.TB, intruder string) estate {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	for _, file := range []string{
		"arizuko.db", "secret", "media/202601/face.jpg", "logs/main/run-1.log", "run/gated.sock",
		"groups/other/notes", "groups/main/notes", "groups/main/child/notes", "groups/main/inbox/1-1-cat.jpg",
	} {
		path := filepath.Join(data, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	group := filepath.Join(data, "groups", "main")
	if err := os.Symlink("../../secret", filepath.Join(group, "link")); err != nil {
		t.Fatal(err)
	}
	return estate{data, Spec{
		RunID: 7, Command: "exec '" + intruder + "'", Image: intruderImage, Dir: group,
		Hidden: []string{filepath.Join(group, "child")}, LogPath: filepath.Join(data, "logs", "main", "run-7.log"),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "LANG=C", "API_KEY=k-value"},
	}}
}

func (e estate) temp() string { return filepath.Join(e.data, "run", "tmp") }

// way is a runtime under test.
type way struct {
	runtime Runtime
	change  func(*Spec)
}

// conversation is a run of the intruder.
type conversation struct {
	t testing.TB
	p *Proc
}

func (w way) converse(t testing.TB, spec Spec) conversation {
	t.Helper()
	w.change(&spec)
	p, err := w.runtime.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(0)
		for range p.Events() {
		}
	})
	return conversation{t, p}
}

// ask gives an order and returns the answer.
func (c conversation) ask(order string) string {
	c.t.Helper()
	if err := c.p.Send([]byte(order + "\n")); err != nil {
		c.t.Fatalf("%s: %v", order, err)
	}
	ev := next(c.t, c.p)
	if ev.Frame == nil {
		c.t.Fatalf("%s: %+v, exit %+v", order, ev, ev.Exit)
	}
	return ev.Frame.Result
}

func (c conversation) refused(orders ...string) {
	c.t.Helper()
	for _, order := range orders {
		if answer := c.ask(order); !strings.HasPrefix(answer, "no ") {
			c.t.Errorf("%s: %.200q", order, answer)
		}
	}
}

func (c conversation) granted(orders map[string]string) {
	c.t.Helper()
	for order, want := range orders {
		if answer := c.ask(order); answer != "ok "+want {
			c.t.Errorf("%s: %.200q, want ok %q", order, answer, want)
		}
	}
}

// finish closes the input and returns the exit.
func (c conversation) finish() Exit {
	c.t.Helper()
	c.p.CloseInput()
	_, _, exit := finish(c.t, c.p)
	return exit
}

// trial is an agent that tries things in one runtime.
type trial struct {
	name     string // of the runtime, as a group's configuration has it
	intruder string // the agent
	engine   *docker.Engine
}

// way is the runtime on an estate. With docker the image brings the program.
func (tr trial) way(e estate) way {
	switch tr.name {
	case "process":
		return way{Process{Temp: e.temp()}, func(*Spec) {}}
	case "bwrap":
		// Even who may read around the data folder does not see into it.
		readable := []string{filepath.Dir(tr.intruder), filepath.Dir(e.data)}
		return way{Sandbox{Temp: e.temp(), Data: e.data, Readable: readable}, func(*Spec) {}}
	}
	return way{
		Docker{Client: "docker", Environ: tr.engine.Environ(), Instance: InstanceOf(e.data), Network: "none"},
		func(s *Spec) { s.Command = "" },
	}
}

func (tr trial) run(t *testing.T) {
	t.Setenv("TELEGRAM_BOT_TOKEN", "t-value")
	for name, test := range map[string]func(*testing.T, way, estate){
		"its own": tr.ownThings, "of others": tr.thingsOfOthers, "outlive": tr.outlive,
		"stop": stopping, "exit code": exitCode, "orphan": tr.orphaned, "check": checks,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(t, tr.intruder)
			test(t, tr.way(e), e)
		})
	}
}

func TestProcessRuntime(t *testing.T) {
	trial{name: "process", intruder: buildIntruder(t)}.run(t)
}

func TestSandboxRuntime(t *testing.T) {
	needBwrap(t)
	trial{name: "bwrap", intruder: buildIntruder(t)}.run(t)
}

func TestDockerRuntime(t *testing.T) {
	tr := trial{name: "docker", intruder: buildIntruder(t), engine: docker.Start(t)}
	tr.engine.Import(t, intruderImage, map[string]string{"agent": tr.intruder})
	tr.run(t)
	tr.containers(t)
	if left := tr.engine.Docker(t, "ps", "--all", "--quiet"); left != "" {
		t.Errorf("containers are left: %s", left)
	}
}

// ownThings are there for the agent in every runtime, and no file that gated was
// left open.
func (tr trial) ownThings(t *testing.T, w way, e estate) {
	left, err := syscall.Open(filepath.Join(e.data, "secret"), syscall.O_RDONLY, 0) // unlike os.Open, for children too
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(left) }()
	c := w.converse(t, e.spec)
	temp := strings.TrimPrefix(c.ask("env TMPDIR"), "ok ")
	c.granted(map[string]string{
		"read notes": "content of groups/main/notes", "read inbox/1-1-cat.jpg": "content of groups/main/inbox/1-1-cat.jpg",
		"write new": "", "write " + temp + "/new": "",
		"files": "", "env API_KEY": "k-value", "env LANG": "C", "env TELEGRAM_BOT_TOKEN": "",
	})
	if tr.name == "bwrap" {
		c.granted(map[string]string{"read /tmp/new": "intruded", "env HOME": e.spec.Dir})
	}
	if exit := c.finish(); exit.Code != 0 || exit.Err != nil {
		t.Errorf("exit %+v", exit)
	}
	if b, err := os.ReadFile(filepath.Join(e.spec.Dir, "new")); err != nil || string(b) != "intruded" {
		t.Errorf("what it wrote: %q, %v", b, err)
	}
	if left, err := os.ReadDir(e.temp()); err == nil && len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

func (tr trial) thingsOfOthers(t *testing.T, w way, e estate) {
	if tr.name == "process" {
		return // it may do what gated may
	}
	c := w.converse(t, e.spec)
	for _, file := range []string{
		"arizuko.db", "secret", "media/202601/face.jpg", "logs/main/run-1.log", "groups/other/notes", "groups/main/child/notes",
	} {
		c.refused("read "+filepath.Join(e.data, file), "write "+filepath.Join(e.data, file))
	}
	c.refused("read link", "read ../other/notes", "read child/notes", "write child/planted", "write ../planted",
		"write /etc/planted", "write /usr/planted", "write /planted", "read /etc/shadow", "list /root",
		"write "+filepath.Join(e.data, "planted"),
		"write /proc/sys/kernel/domainname") // its own at worst, unlike the rest of /proc/sys
	for _, dir := range []string{e.data, "child"} {
		if answer := c.ask("list " + dir); !strings.HasPrefix(answer, "no ") && answer != "ok " && answer != "ok groups" {
			t.Errorf("%s: %q", dir, answer)
		}
	}
	gated := os.Getpid()
	c.refused(fmt.Sprintf("signal %d", gated))
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
	if b, err := os.ReadFile(filepath.Join(e.data, "secret")); err != nil || string(b) != "content of secret" {
		t.Errorf("the secret is %q now, %v", b, err)
	}
}

// outlive tries to leave a process behind that no signal to the group reaches.
func (tr trial) outlive(t *testing.T, w way, e estate) {
	if tr.name == "process" {
		return // nothing holds a process that leaves its group
	}
	name := "lingerer-" + filepath.Base(filepath.Dir(e.data)) + t.Name()
	for what, end := range map[string]func(conversation){
		"by itself": func(c conversation) { c.finish() },
		"stopped": func(c conversation) {
			c.ask("stubborn")
			c.p.Stop(10 * time.Millisecond)
			c.finish()
		},
	} {
		c := w.converse(t, e.spec)
		if answer := c.ask("linger " + name); answer != "ok " {
			t.Fatal(answer)
		}
		if !running(t, name) {
			t.Fatal("it does not linger")
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

func stopping(t *testing.T, w way, e estate) {
	t.Run("politely", func(t *testing.T) {
		c := w.converse(t, e.spec)
		c.ask("stubborn")
		c.ask("polite")
		c.p.terminate()
		results, _, exit := finish(t, c.p)
		if !slices.Equal(results, []string{"terminated"}) || exit.Code != 0 {
			t.Errorf("results %q, exit %+v", results, exit)
		}
	})
	t.Run("by force", func(t *testing.T) {
		c := w.converse(t, e.spec)
		c.ask("stubborn")
		c.p.Stop(50 * time.Millisecond)
		if _, _, exit := finish(t, c.p); exit.Signal != syscall.SIGKILL || exit.Err != nil {
			t.Errorf("exit %+v", exit)
		}
	})
	t.Run("with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		spec := e.spec
		w.change(&spec)
		p, err := w.runtime.Start(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		c := conversation{t, p}
		c.ask("stubborn")
		cancel()
		if _, _, exit := finish(t, p); exit.Signal != syscall.SIGKILL {
			t.Errorf("exit %+v", exit)
		}
	})
}

func exitCode(t *testing.T, w way, e estate) {
	c := w.converse(t, e.spec)
	if err := c.p.Send([]byte("exit 7\n")); err != nil {
		t.Fatal(err)
	}
	if _, _, exit := finish(t, c.p); exit.Code != 7 || exit.Err != nil {
		t.Errorf("exit %+v", exit)
	}
}

func checks(t *testing.T, w way, e estate) {
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

func TestMissingPrograms(t *testing.T) {
	e := newEstate(t, "/bin/true")
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
