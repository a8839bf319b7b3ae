package runtime

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestRunProbe_OldBubblewrap_NamesTheVersionItTakes(t *testing.T) {
	err := runProbe(exec.Command(shell, "-c", "echo bwrap: Unknown option --size; exit 1"), "agent", "", nil)
	if want := "bwrap: Unknown option --size (bubblewrap 0.7 or newer is needed)"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestRunProbe_ProcessIsLeftWithTheOutput_ExitCodeDecides(t *testing.T) {
	for script, ok := range map[string]bool{"sleep 60 &": true, "sleep 60 & exit 1": false} {
		cmd := exec.Command(shell, "-c", script)
		cmd.WaitDelay = 10 * time.Millisecond
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := runProbe(cmd, "agent", "", nil); (err == nil) != ok {
			t.Errorf("%s: %v", script, err)
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Errorf("%s: no process is left: %v", script, err)
		}
	}
}
