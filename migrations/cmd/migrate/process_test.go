package main

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test binary run as migrate, as a helper process.
func TestMain(m *testing.M) {
	if os.Getenv("MIGRATE_TEST_MAIN") != "" {
		os.Exit(run(os.Args[1:], killedAt))
	}
	os.Exit(m.Run())
}

func process(data string, args ...string) *osexec.Cmd {
	cmd := osexec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "MIGRATE_TEST_MAIN=1", "ARIZUKO_DATA="+data)
	return cmd
}

func TestUp_ManyProcesses_OneMigrates(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	results := make(chan string)
	const processes = 4
	for range processes {
		go func() {
			out, err := process(data, "up").CombinedOutput()
			if err != nil {
				out = append(out, err.Error()...)
			}
			results <- strings.TrimSpace(string(out))
		}()
	}
	changed := 0
	for range processes {
		got := <-results
		if !strings.HasSuffix(got, ", nothing to do") {
			changed++
		}
		if !strings.HasPrefix(got, "schema version ") {
			t.Errorf("got %q", got)
		}
	}
	if changed != 1 {
		t.Errorf("%d processes migrated", changed)
	}
}

func TestExitCodes(t *testing.T) {
	cmd := process(t.TempDir(), "sideways")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitConfig || !strings.Contains(string(out), usage) {
		t.Errorf("exit %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}
