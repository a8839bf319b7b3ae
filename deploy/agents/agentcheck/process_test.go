package main

import (
	"os"
	"strings"
	"testing"
)

func TestProcess_Exit_IsDescribed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ command, printed, reason string }{
		"an exit code":              {"echo last; exit 3", "out: last", "exit code 3"},
		"a signal":                  {"kill -KILL $$", "", "ended by signal 9 (killed)"},
		"a missing program":         {"exec /nowhere/agent", "/nowhere/agent: not found", "the agent's program cannot be started: "},
		"a missing file":            {"cat /nowhere/file; exit 127", "", "exit code 127"},
		"a closed stdout":           {"exec >&-; exec sleep 600", "", "it closed its stdout, which must stay open until it exits, and went on running: ended by signal 15 (terminated)"},
		"a child with the output":   {"setsid sleep 20 & echo last", "out: last", "exit code 0"},
		"a child that is killed":    {"sleep 600 & echo last", "out: last", "exit code 0"},
		"much at the end, unread":   {"head -c 200000 /dev/zero | tr '\\0' x; echo; echo last", "out: last", "exit code 0"},
		"an error as its last word": {"echo why >&2; exit 1", "err: why", "exit code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := startProcess(t.Context(), tt.command, t.TempDir(), []string{"PATH=" + os.Getenv("PATH")})
			if err != nil {
				t.Fatal(err)
			}
			printed, reason := "", ""
			for e := range p.events {
				printed += e.Printed + "\n"
				if e.Exit != nil {
					reason = e.Exit.reason()
				}
			}
			if !strings.Contains(printed, tt.printed) || !strings.HasPrefix(reason, tt.reason) {
				t.Errorf("ended with %q, and printed %.2000s", reason, printed)
			}
			if err := p.send(nil); err != errClosed {
				t.Errorf("send after the end: %v", err)
			}
		})
	}
}

// Gated has not started it then.
func TestReadSecrets_WithoutFile_HidesNothing(t *testing.T) {
	if secrets, err := readSecrets(); secrets != nil || err != nil {
		t.Errorf("without a file %q, %v", secrets, err)
	}
	t.Setenv(secretsFD, "nothing")
	if _, err := readSecrets(); err == nil || !strings.Contains(err.Error(), secretsFD) {
		t.Errorf("error %v", err)
	}
}
