// Package docker runs a Docker engine for a test, without a bridge and firewall rules. It leaves
// nothing on the machine. It requires root, as engines do.
package docker

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/testkit/need"
)

const (
	startTimeout = time.Minute      // an engine takes a second or two
	stopTimeout  = 20 * time.Second // with its containers
	pollInterval = 20 * time.Millisecond
)

// Engine is a running engine.
type Engine struct {
	Host string // for DOCKER_HOST
	Dir  string // its files
	log  string // path of its log file
}

// Start starts an engine until the end of the test. Containers have the networks none, host
// and those of [Engine.Network].
func Start(t testing.TB) *Engine {
	t.Helper()
	need.Root(t)
	need.Program(t, "dockerd", "docker.io")
	need.Program(t, "docker", "docker.io")
	// Not t.TempDir: the path of a socket is limited to about a hundred bytes.
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, dir) })
	e := &Engine{Host: "unix://" + filepath.Join(dir, "socket"), Dir: dir, log: filepath.Join(dir, "log")}
	ended := e.serve(t)
	e.await(t, ended)
	return e
}

// serve starts the engine's process, and returns a channel that is closed when it ends.
func (e *Engine) serve(t testing.TB) <-chan struct{} {
	t.Helper()
	log, err := os.Create(e.log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("dockerd", "--host", e.Host, "--data-root", filepath.Join(e.Dir, "data"),
		"--exec-root", filepath.Join(e.Dir, "exec"), "--pidfile", filepath.Join(e.Dir, "pid"),
		"--bridge=none", "--iptables=false", "--ip6tables=false")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // Pdeathsig is sent when the thread ends
		defer runtime.UnlockOSThread()
		defer close(ended)
		defer log.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			t.Errorf("engine did not stop within %v", stopTimeout)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	})
	return ended
}

// await waits until the engine answers.
func (e *Engine) await(t testing.TB, ended <-chan struct{}) {
	t.Helper()
	socket := strings.TrimPrefix(e.Host, "unix://")
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/_ping", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := client.Do(request); err == nil {
			_ = answer.Body.Close()
			return
		}
		select {
		case <-poll.C:
			continue
		case <-ended:
		case <-ctx.Done():
		}
		log, _ := os.ReadFile(e.log)
		t.Fatalf("engine did not start:\n%s", log)
	}
}

// Environ is the environment of clients of this engine.
func (e *Engine) Environ() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DOCKER_HOST=" + e.Host,
		"DOCKER_CONFIG=" + filepath.Join(e.Dir, "client")}
}

// Docker runs the client and returns its output.
func (e *Engine) Docker(t testing.TB, args ...string) string {
	t.Helper()
	return e.client(t, nil, args...)
}

func (e *Engine) client(t testing.TB, stdin io.Reader, args ...string) string {
	t.Helper()
	cmd := exec.Command("docker", args...)
	cmd.Env, cmd.Stdin = e.Environ(), stdin
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("docker %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Network creates a network, in which this machine has an IPv4 address, until the end of the test.
func (e *Engine) Network(t testing.TB, name, address string) {
	t.Helper()
	e.Docker(t, "network", "create", "--subnet", address+"/24", "--gateway", address, name)
	t.Cleanup(func() { // its interface would outlive the engine
		for id := range strings.FieldsSeq(e.Docker(t, "ps", "--all", "--quiet", "--filter", "network="+name)) {
			e.Docker(t, "rm", "--force", id)
		}
		e.Docker(t, "network", "rm", name)
	})
}

// Import creates an image that runs /agent, or is as instructions of a Dockerfile say. The files are paths on
// this machine, by path in the image without the leading slash.
func (e *Engine) Import(t testing.TB, image string, files map[string]string, instructions ...string) {
	t.Helper()
	archive, w := io.Pipe()
	go func() { w.CloseWithError(writeTar(w, files)) }()
	args := []string{"import", "--change", `ENTRYPOINT ["/agent"]`}
	for _, instruction := range instructions {
		args = append(args, "--change", instruction)
	}
	e.client(t, archive, append(args, "-", image)...)
}

func writeTar(to io.Writer, files map[string]string) error {
	w := tar.NewWriter(to)
	// Folders that the engine makes itself may be closed to all users but root.
	folders := map[string]bool{".": true, "etc": true, "sbin": true}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(w, name, files[name]); err != nil {
			return err
		}
	}
	return w.Close()
}

func writeFile(w *tar.Writer, name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// remove removes the engine's folder, and the mounts that engines leave in it.
func remove(t testing.TB, dir string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	inside := []string{}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			inside = append(inside, fields[4])
		}
	}
	slices.Reverse(inside)
	for _, path := range inside {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Error(fmt.Errorf("unmount %s: %w", path, err))
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
