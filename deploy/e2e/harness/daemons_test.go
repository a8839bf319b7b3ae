package harness

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStartReady_FailingDaemon_ErrorHasItsLog(t *testing.T) {
	i := scripted(t, map[string]string{"routd": `echo no disk; exit 3`})
	if got, want := text(i.StartReady(testTimeout(t), "routd")), "routd ended: exit status 3\nlog of routd:\nno disk\n"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestStopAll_SeveralDaemons_AdaptersFirst(t *testing.T) {
	const recorded = `trap 'basename $0 >>order; kill $!; exit 0' TERM; sleep 1000 & echo up; wait`
	i := scripted(t, map[string]string{"routd": recorded, "gated": recorded, "teled": recorded, "floor": rude})
	for _, name := range []string{"routd", "teled", "gated", "floor"} {
		start(t, i, name)
	}
	if got, want := text(i.StopAll(testTimeout(t))), "floor ended with exit status 3"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	order, err := os.ReadFile(filepath.Join(i.Data, "order"))
	if err != nil || string(order) != "teled\ngated\nroutd\n" {
		t.Errorf("they stopped in the order %q, %v", order, err)
	}
}
