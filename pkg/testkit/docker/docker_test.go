package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/testkit/need"
)

const greeter = `package main

func main() { print("hello from inside") }
`

func TestEngine_RunsImageAndLeavesNothing(t *testing.T) {
	need.Full(t)
	var dir string
	t.Run("engine", func(t *testing.T) {
		e := Start(t)
		dir = e.Dir
		e.Import(t, "greeter", map[string]string{"agent": build(t)})
		if out := e.Docker(t, "run", "--rm", "--network", "none", "greeter"); out != "hello from inside" {
			t.Errorf("the container printed %q", out)
		}
	})
	if dir == "" {
		return // no engine was started, and the subtest has failed
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("mounts are left (%v):\n%s", err, mounts)
	}
}

func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(greeter), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", "greeter", "main.go")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GO111MODULE=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "greeter")
}
