package runtime

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAgent_NeverReads(t *testing.T) {
	p := run(t, "sleep 1000")
	line := make([]byte, 256<<10)
	var err error
	accepted := 0
	for err == nil && accepted < 100<<20 {
		if err = p.Send(line); err == nil {
			accepted += len(line)
		}
	}
	if !errors.Is(err, ErrFull) || accepted != maxQueued {
		t.Errorf("after %d bytes: %v, want ErrFull", accepted, err)
	}
	p.CloseInput()
	p.terminate()
	_, _, exit := finish(t, p)
	if exit.Signal != syscall.SIGTERM || exit.Unsent < accepted-(1<<20) {
		t.Errorf("exit %v, %d of %d bytes unsent", exit.Reason(), exit.Unsent, accepted)
	}
}

func TestAgent_ExitsBeforeReading(t *testing.T) {
	p := run(t, "exit 3")
	_ = p.Send([]byte("hello\n")) // either side may be first
	if _, _, exit := finish(t, p); exit.Code != 3 {
		t.Errorf("exit %+v", exit)
	}
}

func TestAgent_ClosesStdin(t *testing.T) {
	p := run(t, script("exec <&-", frame("closed"), "exec sleep 1000"))
	next(t, p)
	if err := p.Send([]byte("lost\n")); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		err := p.Send([]byte("x"))
		if errors.Is(err, ErrClosed) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("Send: %v, want ErrClosed", err)
		}
	}
	p.Stop(0)
	if _, _, exit := finish(t, p); exit.Unsent < len("lost\n") {
		t.Errorf("%d bytes unsent", exit.Unsent)
	}
}

func TestAgent_ClosesStdout(t *testing.T) {
	p := run(t, script(frame("last"), "exec >&-", "cat >/dev/null", "exit 5"))
	results, _, exit := finish(t, p)
	if len(results) != 1 || exit.Code != 5 {
		t.Errorf("results %q, exit %+v: an agent that cannot answer should be asked to finish", results, exit)
	}
}

func TestAgent_ClosesStdoutAndStays_IsEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		then string
		want syscall.Signal
	}{
		"exits at SIGTERM": {"exec sleep 1000", syscall.SIGTERM},
		"ignores SIGTERM":  {"trap '' TERM; sleep 1000", syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := runSpec(t, Spec{RunID: 7, Command: script(frame("last"), "exec >&-", tt.then), Dir: t.TempDir(),
				Env: Environ(os.Environ(), nil), OutputGrace: 50 * time.Millisecond})
			results, _, exit := finish(t, p)
			if !cmp.Equal(results, []string{"last"}) || !exit.Mute || exit.Signal != tt.want {
				t.Errorf("results %q, exit %+v", results, exit)
			}
			if reason := exit.Reason(); !strings.HasPrefix(reason, "it closed its stdout") {
				t.Errorf("reason %q", reason)
			}
		})
	}
}

// A line that is in the pipe when the agent closes its stdin is as lost as one that comes later.
func TestAgent_ClosesStdin_LinesAreKnownToBeLost(t *testing.T) {
	for name, before := range map[string]bool{"sent before": true, "sent after": false} {
		t.Run(name, func(t *testing.T) {
			p := run(t, script("read -r first", frame("got it"), "read -r go", "exec <&-", frame("closed"), "exec sleep 1000"))
			_ = p.Send([]byte("first\n"))
			next(t, p)
			lines := "go\n"
			if before {
				lines += "lost\n"
			}
			_ = p.Send([]byte(lines))
			if ev := next(t, p); ev.Frame == nil {
				t.Fatalf("event %+v", ev)
			}
			if !before {
				select {
				case <-p.Deaf():
					t.Fatal("deaf, and it has read all")
				default:
				}
				_ = p.Send([]byte("lost\n"))
			}
			select {
			case <-p.Deaf():
			case <-time.After(patience):
				t.Fatal("not deaf")
			}
		})
	}
}
