package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// binary is the built program, with its environment.
type binary struct {
	folder string // of the executable
	env    []string
}

func build(t *testing.T) *binary {
	t.Helper()
	folder := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(folder, "routd"), ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	path := "PATH=" + folder + string(os.PathListSeparator) + os.Getenv("PATH")
	return &binary{folder: folder, env: []string{path, "ARIZUKO_DATA=" + dataFolder(t)}}
}

func (b *binary) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = b.env
	return cmd
}

// expect runs routd and compares its exit code and a part of what it prints.
func (b *binary) expect(t *testing.T, code int, text string, args ...string) {
	t.Helper()
	out, err := b.command(filepath.Join(b.folder, "routd"), args...).CombinedOutput()
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if got != code || !strings.Contains(string(out), text) {
		t.Errorf("routd %s: exit %d, want %d with %q\n%s", strings.Join(args, " "), got, code, text, out)
	}
}

// serve starts routd on a free port and passes that to the other commands. stop ends it by
// SIGTERM and returns its exit error.
func (b *binary) serve(t *testing.T) (stop func() error) {
	t.Helper()
	cmd := b.command(filepath.Join(b.folder, "routd"))
	cmd.Env = append(cmd.Env, "ROUTD_ADDR=127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	log := bufio.NewScanner(stderr)
	for log.Scan() {
		if _, addr, ok := strings.Cut(log.Text(), "msg=ready daemon=routd addr="); ok {
			b.env = append(b.env, "ROUTD_ADDR="+addr)
			return func() error {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					return err
				}
				_, _ = io.Copy(io.Discard, stderr)
				return cmd.Wait()
			}
		}
	}
	t.Fatalf("routd ended before it was ready: %v", cmd.Wait())
	return nil
}

func TestBinary_Commands_GiveExitCodes(t *testing.T) {
	b := build(t)
	b.expect(t, 0, "routd: ok", "check")
	b.expect(t, 78, "usage: routd [serve | check | health | access | groups | hooks | resolve | routes | --help | --version]", "dance")
	b.expect(t, 1, "run/routd.http.sock: start it with `routd`, or set ROUTD_URL (dial unix ", "routes", "list")
	b.expect(t, 1, "", "health")

	stop := b.serve(t)
	b.expect(t, 0, "ok", "health")
	b.expect(t, 75, "is locked by process", "serve")
	out, err := b.command("sh", "-ec", examples(t)).CombinedOutput()
	if err != nil {
		t.Errorf("the README's examples: %v\n%s", err, out)
	}
	for _, want := range []string{
		"group acme/eng is registered", "added route 1", "added route 2", "trigger", "verb=mention", "removed group acme/eng",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the README's examples: no %q in\n%s", want, out)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	b.env = append(b.env, "POLL_INTERVAL=soon")
	b.expect(t, 78, "POLL_INTERVAL", "check")
}

// examples are the shell lines of the README.
func examples(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```sh\n")
	lines, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the README has no examples")
	}
	return lines
}
