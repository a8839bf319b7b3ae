// Package need says what a test takes beyond Go and a C compiler. With -short such tests are
// skipped; without, a missing program is a failure, so that nothing stays untested unseen.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// Program skips the test with -short, and fails it where the program is not on the PATH.
// debianPackage has it.
func Program(t testing.TB, program, debianPackage string) {
	t.Helper()
	Full(t)
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%v: run `make setup`, or: apt-get install -y %s", err, debianPackage)
	}
}

// Full skips the test with -short: it needs what only a full run installs or has time for.
func Full(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("not with -short")
	}
}

// Root skips the test with -short, and fails it, unless root runs it. It is for what no other user
// can do, as becoming another user.
func Root(t testing.TB) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	Full(t)
	t.Fatalf("only root can run this test: run it with sudo")
}
