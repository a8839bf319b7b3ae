//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is also a helper process, which the tests crash: it passes a point three times.
func TestMain(m *testing.M) {
	if os.Getenv("FAILPOINT") == "" {
		os.Exit(m.Run())
	}
	for n := range 3 {
		At(Sending)
		fmt.Print(n)
	}
}

func TestAt_CrashesAtTheChosenPass(t *testing.T) {
	for fault, want := range map[string]string{
		"sending": "", "sending:1": "", "sending:3": "01", "sending:4": "012", "sent": "012", "decide.before:2": "012",
		"nowhere": "78", "sending:": "78", "sending:0": "78", "sending:x": "78", ":2": "012",
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "FAILPOINT="+fault)
		said, err := cmd.Output()
		got := string(said)
		var exit *exec.ExitError
		dies := fault == "sending" || fault == "sending:1" || fault == "sending:3"
		switch errors.As(err, &exit); {
		case exit == nil:
		case exit.ExitCode() == 78 && strings.Contains(string(exit.Stderr), "put-turn.before"):
			got = "78"
		case exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && dies:
			dies = false
		default:
			t.Errorf("FAILPOINT=%s: %v", fault, err)
		}
		if got != want || dies {
			t.Errorf("FAILPOINT=%s: got to %q, want %q; want a crash: %t", fault, got, want, dies)
		}
	}
}

func TestAt_TraceFile_HasEachPass(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FAILPOINT=sending:2", "FAILPOINT_TRACE="+file)
	before := time.Now().UnixNano()
	_ = cmd.Run() // it kills itself
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	last := before
	for line := range strings.Lines(string(text)) {
		var at int64
		var point Point
		if _, err := fmt.Sscan(line, &at, &point); err != nil || point != Sending || at < last || at > time.Now().UnixNano() {
			t.Errorf("line %q, %v", line, err)
		}
		last = at
	}
	if n := strings.Count(string(text), "\n"); n != 2 {
		t.Errorf("%d lines", n)
	}
}

func TestNow_ClockFile_IsAhead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	t.Setenv("FAILPOINT_CLOCK", file)
	for text, ahead := range map[string]time.Duration{"": 0, "x": 0, "3600\n": time.Hour, "-60": -time.Minute} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		now := Now()
		if off := now.Round(0).Sub(before.Round(0)) - ahead; off.Abs() > 10*time.Second {
			t.Errorf("%q: ahead by %s, not %s", text, off+ahead, ahead)
		}
		if went := now.Sub(before); went < 0 || went > 10*time.Second {
			t.Errorf("%q: %s have passed", text, went)
		}
	}
}
