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
	awaitFile(t, written)
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

// TestProc_AwaitOutput_WaitsForTheRelay has a process between the agent and the pipe, as Docker's client is.
func TestProc_AwaitOutput_WaitsForTheRelay(t *testing.T) {
	written := filepath.Join(t.TempDir(), "written")
	agent := script(frame("one"), "touch "+written, "cat >/dev/null")
	p := run(t, script("{", agent, "} | { sleep 0.1; cat; }"))
	p.job.relay = patience
	awaitFile(t, written)
	ended, cancel := context.WithCancel(t.Context())
	defer cancel()
	awaited := make(chan error, 1)
	go func() { awaited <- p.AwaitOutput(ended) }()
	select {
	case ev := <-p.Events():
		if ev.Frame == nil {
			t.Errorf("event %+v", ev)
		}
	case err := <-awaited:
		t.Errorf("it did not wait for the frame: %v", err)
	}
	cancel()
}

// awaitFile waits until a file exists.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for begun := time.Now(); ; {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Since(begun) > patience {
			t.Fatal("the agent writes nothing")
		}
	}
}
