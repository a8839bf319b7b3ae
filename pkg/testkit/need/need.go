// Package need declares the requirements of a test beyond Go and a C compiler. With -short such tests are skipped;
// without, a missing program is a failure, so that nothing stays untested unseen. Tests that only root can run are
// skipped for other users.
package need

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Program skips the test with -short, and fails it where the program is not on the PATH. debianPackage has it.
func Program(t testing.TB, program, debianPackage string) {
	t.Helper()
	Full(t)
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%v: run `make setup`, or: apt-get install -y %s", err, debianPackage)
	}
}

// Full skips the test with -short, for tests whose programs or time only a full run has.
func Full(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("not with -short")
	}
}

// Verify skips the test unless `make verify` runs it, with VERIFY set. It is for tests that judge by chance, and for
// those that take long and show again what a quicker test shows: a scenario on one more platform, a daemon killed at
// one more point.
func Verify(t testing.TB) {
	t.Helper()
	Full(t)
	if os.Getenv("VERIFY") == "" {
		t.Skip("only in `make verify`: VERIFY is not set")
	}
}

// Root skips the test unless root runs it, as CI must. It is for actions that no other user can take.
func Root(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 && os.Getenv("CI") != "" && !testing.Short() {
		t.Fatal("CI has to run this test as root: nothing else does")
	} else if os.Getuid() != 0 {
		t.Skip("only root can run this test: run it with sudo")
	}
}

// Disk mounts an empty file system of so many bytes until the test ends, and returns its folder. It skips as Root does.
func Disk(t testing.TB, bytes int64) string {
	t.Helper()
	Root(t)
	folder := t.TempDir()
	if err := syscall.Mount("none", folder, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", bytes)); err != nil {
		t.Fatalf("mount a tmpfs: %v: in a container, run this test with --privileged", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Errorf("unmount %s: %v", folder, err)
		}
	})
	return folder
}
