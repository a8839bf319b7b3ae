package wake_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/wake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runDir makes a folder with a short path: that of t.TempDir contains the test's name.
func runDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wake")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func listen(t testing.TB, dir, daemon string) *wake.Listener {
	t.Helper()
	l, err := wake.Listen(dir, daemon)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// poker returns a Poker whose errors fail the test.
func poker(t testing.TB, dir string) *wake.Poker {
	p := wake.NewPoker(dir, func(daemon string, err error) { t.Errorf("poke %s: %v", daemon, err) })
	t.Cleanup(p.Close)
	return p
}

func wait(t testing.TB, l *wake.Listener) {
	t.Helper()
	select {
	case <-l.C():
	case <-time.After(10 * time.Second):
		t.Fatal("no poke arrived")
	}
}

func TestPokeArrives(t *testing.T) {
	dir := runDir(t)
	p, gated, teled := poker(t, dir), listen(t, dir, "gated"), listen(t, dir, "teled")
	for range 3 {
		p.Poke("gated")
		wait(t, gated)
	}
	select {
	case <-teled.C():
		t.Error("teled got gated's poke")
	default:
	}
	info, err := os.Stat(filepath.Join(dir, "gated.sock"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestListener_ManyPokes_OneValue(t *testing.T) {
	dir := runDir(t)
	p, l := poker(t, dir), listen(t, dir, "gated")
	for range 10_000 {
		p.Poke("gated")
	}
	wait(t, l)
	if n := len(l.C()); n > 1 {
		t.Errorf("%d values wait", n)
	}
}

func TestPoke_PeerDown_IsNoError(t *testing.T) {
	dir := runDir(t)
	p := poker(t, dir)
	p.Poke("gated") // never was
	l := listen(t, dir, "gated")
	p.Poke("gated") // is there now
	wait(t, l)
	l.Close()
	p.Poke("gated") // gone, its file is still there
	if err := os.Remove(filepath.Join(dir, "gated.sock")); err != nil {
		t.Fatal(err)
	}
	p.Poke("gated") // gone with its file
	l = listen(t, dir, "gated")
	p.Poke("gated") // restarted
	wait(t, l)
}

func TestPoke_HungPeer_DoesNotBlockOthers(t *testing.T) {
	dir := runDir(t)
	addr := &net.UnixAddr{Name: filepath.Join(dir, "stuck.sock"), Net: "unixgram"}
	stuck, err := net.ListenUnixgram("unixgram", addr) // reads nothing
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	p, l := poker(t, dir), listen(t, dir, "gated")
	for range 2_000 {
		p.Poke("stuck")
	}
	p.Poke("gated")
	wait(t, l)
}

func TestConcurrentPokes(t *testing.T) {
	dir := runDir(t)
	p, l := poker(t, dir), listen(t, dir, "gated")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				p.Poke("gated")
				p.Poke("absent")
			}
		})
	}
	wg.Wait()
	wait(t, l)
}

func TestPoke_UnexpectedError_CallsOnError(t *testing.T) {
	dir := runDir(t)
	if err := os.Symlink("self.sock", filepath.Join(dir, "self.sock")); err != nil {
		t.Fatal(err)
	}
	var failed []string
	p := wake.NewPoker(dir, func(daemon string, err error) { failed = append(failed, daemon+": "+err.Error()) })
	defer p.Close()
	p.Poke("self")
	p.Poke(strings.Repeat("x", 120))
	if len(failed) != 2 || !strings.Contains(failed[0], "too many levels of symbolic links") || !strings.Contains(failed[1], "shorter data folder") {
		t.Errorf("onError called with %q", failed)
	}
}

func TestListen_UnusablePath_ReturnsError(t *testing.T) {
	dir := runDir(t)
	if _, err := wake.Listen(dir, strings.Repeat("x", 120)); err == nil || !strings.Contains(err.Error(), "shorter data folder") {
		t.Errorf("long path: %v", err)
	}
	if _, err := wake.Listen(filepath.Join(dir, "none"), "gated"); err == nil {
		t.Error("a missing folder is no error")
	}
	if err := os.MkdirAll(filepath.Join(dir, "gated.sock", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := wake.Listen(dir, "gated"); err == nil {
		t.Error("a folder at the path is no error")
	}
}

func TestLongestPath(t *testing.T) {
	dir := runDir(t)
	name := strings.Repeat("x", 106-len(dir)-len("/.sock"))
	l := listen(t, dir, name)
	poker(t, dir).Poke(name)
	wait(t, l)
	if _, err := wake.Listen(dir, name+"x"); err == nil {
		t.Error("107 bytes are accepted")
	}
}

// BenchmarkPoke measures the sender.
func BenchmarkPoke(b *testing.B) {
	dir := runDir(b)
	p := poker(b, dir)
	listen(b, dir, "gated")
	b.ReportAllocs()
	for b.Loop() {
		p.Poke("gated")
	}
}

// BenchmarkWake measures the time from a poke to the reader's select.
func BenchmarkWake(b *testing.B) {
	dir := runDir(b)
	p, l := poker(b, dir), listen(b, dir, "gated")
	b.ReportAllocs()
	for b.Loop() {
		p.Poke("gated")
		wait(b, l)
	}
}
