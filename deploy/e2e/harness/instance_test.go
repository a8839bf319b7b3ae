package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for anything.
const patience = 30 * time.Second

// Scripts of daemons. They say something when they have set up what they do about signals.
const (
	sleeps   = `echo up; exec sleep 1000`
	polite   = `trap 'echo bye; kill $!; exit 0' TERM; sleep 1000 & echo up; wait`
	rude     = `trap 'kill $!; exit 3' TERM; sleep 1000 & echo up; wait`
	stubborn = `trap '' TERM; echo up; exec sleep 1000`
)

// TestMain runs the tests. Told to start, the test binary is a program that starts gated from a
// folder of programs, and ends when its input does.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "start" {
		if err := startAndWait(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func startAndWait(bin string) error {
	i, err := New(bin)
	if err != nil {
		return err
	}
	if err := i.Start("gated"); err != nil {
		return err
	}
	fmt.Println(i.Data)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// scripts makes a folder of programs that are shell scripts.
func scripts(t *testing.T, all map[string]string) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// scripted is an instance whose programs are shell scripts.
func scripted(t *testing.T, all map[string]string) *Instance {
	t.Helper()
	i, err := New(scripts(t, all))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// patient is a context for something that is to happen.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until waits for something.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if err := Await(patient(t), what, func() (bool, error) { return holds(), nil }); err != nil {
		t.Fatal(err)
	}
}

// start starts a daemon, and waits until it has said so in all its starts.
func start(t *testing.T, i *Instance, name string, env ...string) *Process {
	t.Helper()
	before := strings.Count(logged(t, i, name), "up\n")
	if err := i.Start(name, env...); err != nil {
		t.Fatal(err)
	}
	until(t, name+" to be up", func() bool { return strings.Count(logged(t, i, name), "up\n") > before })
	return i.Process(name)
}

func logged(t *testing.T, i *Instance, name string) string {
	t.Helper()
	log, err := i.Log(name)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// ended waits until a daemon is gone.
func ended(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-patient(t).Done():
		t.Fatal("it does not end")
	}
}

func TestBuildMakesPrograms(t *testing.T) {
	bin, err := Build("", "arizuko/deploy/agents/demo")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(bin)
	info, err := os.Stat(filepath.Join(bin, "demo"))
	if err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the program is %v, %v", info, err)
	}
}

func TestBuildThatFailsLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	bin, err := Build("", "arizuko/deploy/nowhere")
	if err == nil || !strings.Contains(err.Error(), "go build: exit status 1\n") || !strings.Contains(err.Error(), "arizuko/deploy/nowhere") {
		t.Errorf("the error is %v", err)
	}
	left, err := filepath.Glob(filepath.Join(temp, "arizuko*"))
	if bin != "" || err != nil || len(left) > 0 {
		t.Errorf("it returns %q and leaves %v, %v", bin, left, err)
	}
}

func TestBuildWithNowhereToPutIt(t *testing.T) {
	t.Setenv("TMPDIR", "/dev/null")
	if bin, err := Build("", "arizuko/deploy/agents/demo"); err == nil || bin != "" {
		t.Errorf("it makes %q", bin)
	}
	if _, err := New(""); err == nil {
		t.Error("it makes an instance")
	}
}

func TestNewIn(t *testing.T) {
	parent := t.TempDir()
	i, err := NewIn(parent, "/nonexistent")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(i.Data) != parent {
		t.Errorf("the data folder is %s, not in %s", i.Data, parent)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if _, err := NewIn(i.Data, "/nonexistent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("where there is no folder: %v", err)
	}
}

func TestInstancesAreApart(t *testing.T) {
	one, two := scripted(t, nil), scripted(t, nil)
	if one.Data == two.Data || one.Host == two.Host {
		t.Errorf("they share %s or %s", one.Data, one.Host)
	}
	ip := net.ParseIP(one.Host)
	if !ip.IsLoopback() || slices.Contains([]string{"127.0.0.1", "127.0.1.1"}, one.Host) {
		t.Errorf("it listens on %s", one.Host)
	}
	if want := "http://" + one.Host + ":8081"; one.URL("routd") != want {
		t.Errorf("routd answers at %s, want %s", one.URL("routd"), want)
	}
	if entries, err := os.ReadDir(one.Data); err != nil || len(entries) > 0 {
		t.Errorf("the data folder has %v, %v", entries, err)
	}
	if want := filepath.Join(one.Data, "arizuko.db"); one.Database() != want {
		t.Errorf("the database is %s, want %s", one.Database(), want)
	}
}

func TestProgramsRunInTheEnvironmentOfTheInstance(t *testing.T) {
	t.Setenv("SECRET_OF_OURS", "1")
	i := scripted(t, map[string]string{"gated": `pwd; env | sort; echo up; exec sleep 1000`})
	i.Env = append(i.Env, "MORE=1", "POLL=1")
	start(t, i, "gated", "FAILPOINT=read:1", "POLL=2")
	log := logged(t, i, "gated")
	for _, want := range []string{
		i.Data, "ARIZUKO_DATA=" + i.Data, "HOME=" + i.Data, "TZ=UTC", "GATED_ADDR=" + i.Host + ":8080", "ROUTD_ADDR=" + i.Host + ":8081",
		"DASHD_ADDR=" + i.Host + ":8083", "TELED_ADDR=" + i.Host + ":8091", "MORE=1", "FAILPOINT=read:1", "POLL=2",
	} {
		if !strings.Contains(log, want+"\n") {
			t.Errorf("it lacks %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, "SECRET_OF_OURS") || strings.Contains(log, "POLL=1") {
		t.Errorf("it has too much:\n%s", log)
	}
	if strings.Contains(strings.Join(i.Env, " "), "FAILPOINT") {
		t.Error("what one start has all have")
	}
}

func TestMigrate(t *testing.T) {
	i := scripted(t, map[string]string{"migrate": `test "$*" = up || exit 64; echo made >"$ARIZUKO_DATA/arizuko.db"`})
	if err := i.Migrate(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(i.Database()); err != nil {
		t.Error(err)
	}
	broken := scripted(t, map[string]string{"migrate": `echo is locked >&2; exit 75`})
	if err := broken.Migrate(); err == nil || err.Error() != "migrate up: exit status 75\nis locked\n" {
		t.Errorf("the error is %v", err)
	}
}

func TestSecret(t *testing.T) {
	i := scripted(t, nil)
	if secret, err := i.Secret(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before there is one it is %q, %v", secret, err)
	}
	if err := os.WriteFile(filepath.Join(i.Data, "secret"), []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if secret, err := i.Secret(); secret != "hush" || err != nil {
		t.Errorf("it is %q, %v", secret, err)
	}
}

func TestAProgramThatCannotStart(t *testing.T) {
	i := scripted(t, nil)
	if err := i.Start("gated"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	if i.Running("gated") || i.Process("gated") != nil || len(i.Started()) > 0 {
		t.Errorf("it runs: %t, it was started: %v", i.Running("gated"), i.Started())
	}
}

func TestStartAndKillAndStartAgain(t *testing.T) {
	i := scripted(t, map[string]string{"gated": stubborn, "dashd": sleeps})
	if i.Running("gated") {
		t.Error("it runs before it is started")
	}
	if err := i.Kill("gated"); err != nil {
		t.Errorf("what never ran cannot be killed: %v", err)
	}
	first := start(t, i, "gated")
	start(t, i, "dashd")
	if !i.Running("gated") || !first.Running() || first.PID() == 0 {
		t.Error("it does not run")
	}
	for range 2 { // the second time it is gone already
		if err := i.Kill("gated"); err != nil {
			t.Fatal(err)
		}
		if i.Running("gated") || first.Running() || !first.Killed() {
			t.Errorf("it runs: %t, it ended with %s", i.Running("gated"), first.State())
		}
	}
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal to what is gone: %v", err)
	}
	second := start(t, i, "gated")
	if second == first || !i.Running("gated") || first.Running() || i.Process("gated") != second {
		t.Error("it does not run again")
	}
	if !slices.Equal(i.Started(), []string{"dashd", "gated"}) {
		t.Errorf("started were %v", i.Started())
	}
	if !i.Running("dashd") {
		t.Error("another was killed as well")
	}
}

func TestStop(t *testing.T) {
	for name, tc := range map[string]struct {
		script, says string
	}{
		"polite":  {polite, ""},
		"rude":    {rude, "gated ended with exit status 3"},
		"default": {sleeps, "gated ended with signal: terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			i := scripted(t, map[string]string{"gated": tc.script})
			p := start(t, i, "gated")
			err := i.Stop(patient(t), "gated")
			if got := said(err); got != tc.says {
				t.Errorf("the error is %q, want %q", got, tc.says)
			}
			if i.Running("gated") || p.Killed() {
				t.Errorf("it runs: %t, killed: %t", i.Running("gated"), p.Killed())
			}
			if again := said(i.Stop(patient(t), "gated")); again != tc.says {
				t.Errorf("what is gone stops with %q, want %q", again, tc.says)
			}
		})
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestStopOfWhatDoesNotStop(t *testing.T) {
	i := scripted(t, map[string]string{"gated": stubborn})
	start(t, i, "gated")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := i.Stop(ctx, "gated")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "gated does not stop") {
		t.Errorf("the error is %v", err)
	}
	if !i.Running("gated") {
		t.Error("it has ended nevertheless")
	}
}

func TestKilled(t *testing.T) {
	for script, want := range map[string]bool{
		`kill -9 $$`:  true,
		`kill -15 $$`: false,
		`exit 137`:    false, // as shells tell of it
		`exit 0`:      false,
	} {
		i := scripted(t, map[string]string{"gated": script})
		if err := i.Start("gated"); err != nil {
			t.Fatal(err)
		}
		p := i.Process("gated")
		ended(t, p)
		if p.Killed() != want || p.Running() {
			t.Errorf("%s: it ended with %s, killed %t", script, p.State(), p.Killed())
		}
	}
}

func TestLogIsKeptOverStarts(t *testing.T) {
	i := scripted(t, map[string]string{"gated": `echo "$WHICH"; echo oops >&2; exit 0`, "routd": sleeps})
	if log := logged(t, i, "gated"); log != "" {
		t.Errorf("before the first start it is %q", log)
	}
	for _, which := range []string{"one", "two"} {
		if err := i.Start("gated", "WHICH="+which); err != nil {
			t.Fatal(err)
		}
		ended(t, i.Process("gated"))
	}
	start(t, i, "routd")
	if log := logged(t, i, "gated"); log != "one\noops\ntwo\noops\n" {
		t.Errorf("it is %q", log)
	}
}

func TestAwait(t *testing.T) {
	broken := errors.New("broken")
	looked := 0
	err := Await(patient(t), "it", func() (bool, error) { looked++; return looked == 3, nil })
	if err != nil || looked != 3 {
		t.Errorf("%v after %d looks", err, looked)
	}
	if err := Await(patient(t), "it", func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("what breaks is awaited with %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Await(gone, "it", func() (bool, error) { return true, nil }); err != nil {
		t.Errorf("what holds is awaited with %v", err)
	}
	if err := Await(gone, "it", func() (bool, error) { return false, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("what does not hold is awaited with %v", err)
	}
}

// agent is a script that leaves a process behind in a group's folder.
const agent = `mkdir -p groups/main; (cd groups/main && exec setsid sleep 1000) & until test "$(readlink /proc/$!/exe)" != "$(readlink /proc/$$/exe)"; do :; done; echo up; exec sleep 1000`

func TestStraysOutliveTheirDaemonAndNotTheInstance(t *testing.T) {
	i, other := scripted(t, map[string]string{"gated": agent}), scripted(t, map[string]string{"gated": agent})
	if strays, err := i.Strays(); err != nil || len(strays) > 0 {
		t.Errorf("at first strays are %v, %v", strays, err)
	}
	p := start(t, i, "gated")
	start(t, other, "gated")
	strays, err := i.Strays()
	if err != nil || len(strays) != 1 || slices.Contains(strays, p.PID()) {
		t.Fatalf("strays are %v, %v", strays, err)
	}
	if err := i.Kill("gated"); err != nil {
		t.Fatal(err)
	}
	if still, err := i.Strays(); err != nil || !slices.Equal(still, strays) {
		t.Errorf("of %v there are %v, %v", strays, still, err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "strays to be gone", func() bool { left, _ := i.Strays(); return len(left) == 0 })
	if left, err := other.Strays(); err != nil || len(left) != 1 {
		t.Errorf("another's strays are %v, %v", left, err)
	}
}

func TestCloseKillsAndRemoves(t *testing.T) {
	i := scripted(t, map[string]string{"gated": stubborn, "routd": stubborn})
	gated, routd := start(t, i, "gated"), start(t, i, "routd")
	for range 2 { // the second time there is nothing left
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if gated.Running() || routd.Running() || !gated.Killed() || !routd.Killed() {
		t.Errorf("they ended with %s and %s", gated.State(), routd.State())
	}
	if _, err := os.Stat(i.Data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data folder is still there: %v", err)
	}
}

func TestDaemonsDieWithUs(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := scripts(t, map[string]string{"gated": `mkdir -p groups/main; cd groups/main; exec sleep 1000`})
	us := exec.Command(self, "start", bin)
	us.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	stdin, err := us.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := us.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := us.Start(); err != nil {
		t.Fatal(err)
	}
	data, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(errors.Join(err, us.Wait()))
	}
	i := &Instance{Data: strings.TrimSpace(data)}
	defer i.Close()
	strays := func() int { all, _ := i.Strays(); return len(all) }
	until(t, "gated to run", func() bool { return strays() == 1 })
	stdin.Close()
	if err := us.Wait(); err != nil {
		t.Fatal(err)
	}
	until(t, "gated to be gone", func() bool { return strays() == 0 })
}
