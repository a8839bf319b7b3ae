package harness

import (
	"testing"
)

func TestProcesses_OtherInstance_NotListed(t *testing.T) {
	one, two := scripted(t, map[string]string{"gated": sleeps}), scripted(t, map[string]string{"gated": sleeps})
	p := start(t, one, "gated")
	until(t, "the shell to become sleep", func() bool { pids, _ := one.Processes("sleep"); return len(pids) > 0 })
	for i, want := range map[*Instance]int{one: 1, two: 0} {
		pids, err := i.Processes("")
		if err != nil || len(pids) != want {
			t.Errorf("processes %v, %v, want %d", pids, err, want)
		}
	}
	if pids, _ := one.Processes("sleep"); len(pids) != 1 || pids[0] != p.PID() {
		t.Errorf("sleep runs as %v, want %d", pids, p.PID())
	}
	if pids, _ := one.Processes("gated"); len(pids) != 0 {
		t.Errorf("gated runs as %v", pids)
	}
}
