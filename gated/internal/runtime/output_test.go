package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestProc_AwaitOutput_WaitsUntilFramesAreReceived(t *testing.T) {
	written := filepath.Join(t.TempDir(), "written")
	p := run(t, script(frame("one"), frame("two"), "touch "+written, "cat >/dev/null"))
	for begun := time.Now(); ; {
		if _, err := os.Stat(written); err == nil {
			break
		}
		if time.Since(begun) > patience {
			t.Fatal("the agent writes nothing")
		}
	}
	for range 2 {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.AwaitOutput(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("before the frames are received: %v", err)
		}
		if ev := next(t, p); ev.Frame == nil {
			t.Fatalf("event %+v", ev)
		}
	}
	if err := p.AwaitOutput(t.Context()); err != nil {
		t.Error(err)
	}
	p.Stop(0)
	if err := p.AwaitOutput(t.Context()); err != nil {
		t.Errorf("after the exit: %v", err)
	}
}
