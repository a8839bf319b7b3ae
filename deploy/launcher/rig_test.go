package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for anything.
const patience = 30 * time.Second

// built is the folder of the real programs, set by TestMain.
var built string

// TestMain builds the programs. Under the name of dashd the test binary is a stand-in for it
// with all that the launcher asks of a dashd.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "dashd" {
		os.Exit(fakeDashd())
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	var err error
	if built, err = os.MkdirTemp("", "launcher-bin"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(built)
	build := exec.Command("go", "build", "-o", built+"/", "arizuko/routd", "arizuko/gated",
		"arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo", "arizuko/deploy/launcher")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func fakeDashd() int {
	secret, err := os.ReadFile(filepath.Join(os.Getenv("ARIZUKO_DATA"), "secret"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bearer := []byte("Bearer " + strings.TrimSpace(string(secret)))
	addr := os.Getenv("DASHD_ADDR")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/login-link", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), bearer) == 0:
			w.WriteHeader(http.StatusUnauthorized)
		case os.Getenv("DASH_PASSWORD") != "":
			w.WriteHeader(http.StatusConflict)
		default:
			fmt.Fprintf(w, `{"url":"http://%s/login?token=abc"}`, addr)
		}
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: addr, Handler: mux}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// place is one data folder with the programs and the environment to start it in.
type place struct {
	t    *testing.T
	bin  string
	data string
	host string
	env  []string
}

// installed is a place with the real programs, and the stand-in for dashd.
func installed(t *testing.T, env ...string) *place {
	p := bare(t, env...)
	for _, name := range []string{"routd", "gated", "migrate", "demo"} {
		p.link(filepath.Join(built, name), name)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.link(binary, "dashd")
	return p
}

// scripted is a place whose programs are shell scripts: those given, and for the rest ones
// that do what is asked of them and are never ready.
func scripted(t *testing.T, scripts map[string]string, env ...string) *place {
	p := bare(t, env...)
	for _, name := range []string{"routd", "gated", "dashd"} {
		p.script(name, "echo started; exec sleep 1000")
	}
	p.script("migrate", "")
	for name, text := range scripts {
		p.script(name, text)
	}
	return p
}

func bare(t *testing.T, env ...string) *place {
	t.Parallel()
	// Not t.TempDir, whose path is too long for the sockets.
	dir, err := os.MkdirTemp("", "launch")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, bin: filepath.Join(dir, "bin"), data: filepath.Join(dir, "data")}
	t.Cleanup(func() {
		for _, pid := range p.left() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Mkdir(p.bin, 0o700); err != nil {
		t.Fatal(err)
	}
	// No symbolic link: the launcher looks beside the file it really is.
	p.hardlink(filepath.Join(built, "launcher"), "launcher")
	sum := crc32.ChecksumIEEE([]byte(dir))
	p.host = fmt.Sprintf("127.%d.%d.%d", 128|sum>>16&63, sum>>8&255, 1+sum%254)
	p.env = append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TZ=UTC", "ARIZUKO_DATA=" + p.data,
		"GATED_ADDR=" + p.addr(8080), "ROUTD_ADDR=" + p.addr(8081), "ONBOD_ADDR=" + p.addr(8082), "DASHD_ADDR=" + p.addr(8083),
	}, env...)
	return p
}

func (p *place) addr(port int) string { return p.host + ":" + strconv.Itoa(port) }

func (p *place) link(from, name string) {
	p.t.Helper()
	if err := os.Symlink(from, filepath.Join(p.bin, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) hardlink(from, name string) {
	p.t.Helper()
	if err := os.Link(from, filepath.Join(p.bin, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) script(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		p.t.Fatal(err)
	}
}

// brokenProgram makes a program that the kernel will not run.
func (p *place) brokenProgram(name string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.bin, name), []byte("\x7fELF"), 0o700); err != nil {
		p.t.Fatal(err)
	}
}

// readyLine is what the launcher prints on stdout when the link has the query.
func (p *place) readyLine(query string) string {
	return "arizuko ready: http://" + p.addr(8083) + "/login?" + query + "\n"
}

// left are the processes that run in this place, the launchers included.
func (p *place) left() (pids []int) {
	return p.running("")
}

// running are the processes of this place whose program has the name, any for "".
func (p *place) running(name string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		p.t.Error(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Both are empty for zombies and for processes that have just gone.
		env, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		args, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		program, _, _ := strings.Cut(string(args), "\x00")
		if bytes.Contains(env, []byte(p.data+"\x00")) && (name == "" || filepath.Base(program) == name) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// launched is a running launcher.
type launched struct {
	*place
	cmd  *exec.Cmd
	out  string // path of its stdout
	err  string // path of its stderr
	done chan struct{}
}

func (p *place) launch(args ...string) *launched {
	p.t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(p.data), "output")
	if err != nil {
		p.t.Fatal(err)
	}
	l := &launched{place: p, out: filepath.Join(dir, "out"), err: filepath.Join(dir, "err"), done: make(chan struct{})}
	l.cmd = exec.Command(filepath.Join(p.bin, "launcher"), args...)
	l.cmd.Env = p.env
	stdout, err := os.Create(l.out)
	if err != nil {
		p.t.Fatal(err)
	}
	defer stdout.Close()
	stderr, err := os.Create(l.err)
	if err != nil {
		p.t.Fatal(err)
	}
	defer stderr.Close()
	l.cmd.Stdout, l.cmd.Stderr = stdout, stderr
	if err := l.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = l.cmd.Wait()
		close(l.done)
	}()
	p.t.Cleanup(func() {
		_ = l.cmd.Process.Kill()
		<-l.done
		if p.t.Failed() {
			p.t.Logf("stdout:\n%s\nstderr:\n%.8000s", l.stdout(), l.stderr())
		}
	})
	return l
}

func (l *launched) stdout() string { return l.read(l.out) }
func (l *launched) stderr() string { return l.read(l.err) }

func (l *launched) read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		l.t.Error(err)
	}
	return string(text)
}

func (l *launched) signal(sig syscall.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(sig); err != nil {
		l.t.Fatal(err)
	}
}

// until waits for something to become true.
func (p *place) until(what string, holds func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-deadline.C:
			p.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// says waits until the launcher has printed something on stderr.
func (l *launched) says(text string) {
	l.t.Helper()
	l.until(fmt.Sprintf("it says %q", text), func() bool { return strings.Contains(l.stderr(), text) })
}

// ready waits for the line on stdout and returns it.
func (l *launched) ready() string {
	l.t.Helper()
	l.until("it is ready", func() bool {
		select {
		case <-l.done:
			l.t.Fatalf("it ended with %d", l.cmd.ProcessState.ExitCode())
		default:
		}
		return strings.HasSuffix(l.stdout(), "\n")
	})
	return l.stdout()
}

// ends waits for the launcher's end with an exit code, and expects nothing to be left.
func (l *launched) ends(code int) {
	l.t.Helper()
	l.until("it ends", func() bool {
		select {
		case <-l.done:
			return true
		default:
			return false
		}
	})
	if got := l.cmd.ProcessState.ExitCode(); got != code {
		l.t.Errorf("it ended with %d, want %d", got, code)
	}
	if left := l.left(); len(left) > 0 {
		l.t.Errorf("processes %v are left", left)
	}
}
