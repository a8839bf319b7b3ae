package lockfile_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/lockfile"
)

// TestMain is also a helper process: it takes the lock, prints a line and waits for EOF.
func TestMain(m *testing.M) {
	if path := os.Getenv("LOCKFILE_TEST_HOLD"); path != "" {
		if _, err := lockfile.TryLock(path); err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// taken takes a lock that is free.
func taken(t *testing.T, path string) *lockfile.Lock {
	t.Helper()
	lock, err := lockfile.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func TestTryLock_Held_ReturnsHeldError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	first := taken(t, path)
	_, err := lockfile.TryLock(path)
	var held *lockfile.HeldError
	if !errors.Is(err, lockfile.ErrHeld) || !errors.As(err, &held) {
		t.Fatalf("error is %v, want a HeldError", err)
	}
	if held.PID != os.Getpid() || time.Since(held.Since) > time.Minute {
		t.Errorf("held by %d since %s", held.PID, held.Since)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if first.Close() == nil {
		t.Error("the second Close returned no error")
	}
	again := taken(t, path)
	again.Close()
}

func TestTryLock_InvalidContent_IsIgnored(t *testing.T) {
	for _, content := range []string{"", "\x00\xff", "-3 2020-01-01T00:00:00Z\n", "99 yesterday\n", strings.Repeat("9", 10_000)} {
		path := filepath.Join(t.TempDir(), "x.lock")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		lock := taken(t, path)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := lockfile.TryLock(path)
		if !errors.Is(err, lockfile.ErrHeld) || !strings.Contains(err.Error(), "another process") {
			t.Errorf("%.20q: %v", content, err)
		}
		lock.Close()
	}
}

func TestTryLock_MissingFolder_ReturnsError(t *testing.T) {
	_, err := lockfile.TryLock(filepath.Join(t.TempDir(), "none", "x.lock"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestTryLock_HolderKilled_IsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), "LOCKFILE_TEST_HOLD="+path)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder printed %q, %v", line, err)
	}
	_, err = lockfile.TryLock(path)
	var held *lockfile.HeldError
	if !errors.As(err, &held) || held.PID != holder.Process.Pid {
		t.Errorf("got %v, want held by %d", err, holder.Process.Pid)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	lock := taken(t, path)
	lock.Close()
}

func TestWaitLock_Held_WaitsForTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	first := taken(t, path)
	if _, err := lockfile.WaitLock(path, time.Millisecond); !errors.Is(err, lockfile.ErrHeld) {
		t.Fatalf("error is %v, want held", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { _ = first.Close() })
	second, err := lockfile.WaitLock(path, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Close()
}

func TestTryLock_AsRoot_GivesFileToOwnerOfFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away: run this test with sudo")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "x.lock")
	for range 2 { // the second time root has made it before
		lock := taken(t, path)
		lock.Close()
		if err := os.Chown(folder, 4242, 4243); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 4242 || st.Gid != 4243 {
		t.Errorf("the lock belongs to %d:%d", st.Uid, st.Gid)
	}
}

func TestTryLock_Link_ReturnsErrorAndKeepsFile(t *testing.T) {
	folder := t.TempDir()
	other, path := filepath.Join(folder, "other"), filepath.Join(folder, "x.lock")
	if err := errors.Join(os.WriteFile(other, []byte("kept"), 0o600), os.Symlink(other, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := lockfile.TryLock(path); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("got %v", err)
	}
	if got, err := os.ReadFile(other); err != nil || string(got) != "kept" {
		t.Errorf("the file has %q, %v", got, err)
	}
}

func TestTryLock_AsRoot_FolderIsALinkOfAnotherUser_IsNotFollowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root follows no links of others: run this test with sudo")
	}
	data, victim := t.TempDir(), t.TempDir()
	file := filepath.Join(victim, "yarn.lock")
	err := errors.Join(os.WriteFile(file, []byte("kept"), 0o600), os.Symlink(victim, filepath.Join(data, "run")), os.Chown(data, 4242, 4242))
	if err != nil {
		t.Fatal(err)
	}
	if lock, err := lockfile.TryLock(filepath.Join(data, "run", "yarn.lock")); err == nil {
		t.Error("it was locked", lock.Close())
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "kept" {
		t.Errorf("the file has %q, %v", got, err)
	}
	if err := os.Chown(data, 0, 0); err != nil {
		t.Fatal(err)
	}
	lock := taken(t, filepath.Join(data, "run", "x.lock"))
	lock.Close()
}

func TestFolder_TakenAgain_FindsLocksThatAppeared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a[b*") // no pattern
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	var all lockfile.Folder
	for range 2 {
		if err := all.Take(path, "x.lock"); err != nil {
			t.Fatal(err)
		}
	}
	other := taken(t, filepath.Join(path, "y.lock"))
	if err := all.Take(path); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("y.lock is held: %v", err)
	}
	other.Close()
	if err := all.Take(path); err != nil {
		t.Error(err)
	}
	all.Close()
	if lock, err := lockfile.TryLock(filepath.Join(path, "x.lock")); err != nil {
		t.Error(err)
	} else {
		lock.Close()
	}
}
