package doctor

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/facts"
	"arizuko/pkg/lockfile"
)

// launched is a data folder whose launcher is this process.
func launched(t *testing.T) config.Base {
	t.Helper()
	base := config.Base{Data: t.TempDir()}
	if err := os.Mkdir(base.RunDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := lockfile.TryLock(filepath.Join(base.RunDir(), "launcher.lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	return base
}

// run starts a program as a daemon, which has printed a line when run returns. wrapped puts a shell between.
func run(t *testing.T, base config.Base, name string, wrapped bool, script string) *exec.Cmd {
	t.Helper()
	words := []string{"flock", "--no-fork", filepath.Join(base.RunDir(), name+".lock"), "sh", "-c", script}
	if wrapped {
		words = append([]string{"sh", "-c", `"$@"; exit`, "-"}, words...)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestRestart_Launched_Ends(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		stop         bool
		want         string
	}{
		{"gated", "echo; exec sleep 1000", false, "signal: terminated"},
		{"routd", "echo; exec sleep 1000", true, "signal: terminated"},
		{"teled", "trap '' TERM; echo; exec sleep 1000", false, "signal: killed"},
	} {
		base := launched(t)
		cmd := run(t, base, tt.name, false, tt.script)
		if tt.stop {
			_ = cmd.Process.Signal(syscall.SIGSTOP)
		}
		patience := time.Minute
		if strings.HasPrefix(tt.script, "trap") {
			patience = 0
		}
		if err := end(t.Context(), base, tt.name, patience); err != nil {
			t.Errorf("%s: %v", tt.script, err)
		}
		if err := cmd.Wait(); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.script, err, tt.want)
		}
	}
}

func TestRestart_OfAnotherProgram_IsRefused(t *testing.T) {
	t.Parallel()
	base := launched(t)
	cmd := run(t, base, "gated", true, "echo; exec sleep 1000")
	for _, name := range []string{"gated", "routd", "../launcher", "launcher"} {
		if err := Restart(t.Context(), base, name); apierr.KindOf(err) != apierr.Conflict ||
			!strings.Contains(err.Error(), "docker compose restart "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
		t.Error(err)
	}
}

func TestFix_Restart_IsSaidAndDoneOnce(t *testing.T) {
	t.Parallel()
	base := launched(t)
	cmd := run(t, base, "gated", false, "echo; exec sleep 1000")
	var out strings.Builder
	Fix(t.Context(), Config{Base: base}, nil, []facts.Fact{{Kind: "unsent", Text: "7 wait", Restart: []string{"gated"}},
		{Kind: "queue", Text: "no run takes it", Restart: []string{"gated"}},
		{Kind: "parked", Text: "3 are parked", Restart: []string{"gated"}}}, &out)
	if out.String() != "restart gated, since no run takes it: done\n" {
		t.Error(out.String())
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Error(err)
	}
}
