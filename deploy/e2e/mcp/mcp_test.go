package mcp

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/testkit/need"
)

// parallel is how many instances run at once.
const parallel = "2"

// maxWait is how long a client may take. It says nothing about speed.
const maxWait = 5 * time.Minute

var programs = harness.NewPrograms("", "arizuko/gated", "arizuko/routd", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, parallel)) }

const chat = "telegram:5"

// turn is a turn at work, with the tools of its run.
type turn struct {
	*harness.Fixture
	row   int64 // of its message
	tools agentproto.MCP
}

// startTurn makes an instance with an agent that works on a turn until the test stops it.
func startTurn(t *testing.T) *turn {
	t.Helper()
	need.Verify(t)
	t.Parallel()
	f := harness.Start(t, programs, harness.Options{Agent: harness.RecordingAgent})
	f.AddGroups("main", "other")
	f.AddRoute("", "main")
	w := &turn{Fixture: f, row: f.Say(chat, "slow 3600 think")}
	f.WaitRunning(w.row)
	f.Until("the agent to have its first line", func() bool {
		input, err := os.ReadFile(filepath.Join(f.Data, "groups", "main", "input.jsonl"))
		line, _, whole := strings.Cut(string(input), "\n")
		if err != nil || !whole {
			return false // not written yet
		}
		first, err := agentproto.ReadInput([]byte(line))
		f.OK(err)
		start, ok := first.(agentproto.Start)
		if !ok || start.MCP == nil {
			t.Fatalf("no tools in the line %s", line)
		}
		w.tools = *start.MCP
		return true
	})
	return w
}

// stop ends the turn, and with it its run.
func (w *turn) stop() {
	w.T.Helper()
	w.Say(chat, "/stop")
	w.WaitEnded(w.row)
	w.Until("the run to end", func() bool { return len(w.Agents()) == 0 })
}

// client runs a program of node_modules/.bin, and returns its output and its exit code.
func client(t *testing.T, program string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("node_modules", ".bin"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
		t.Fatalf("%v: run `make setup`", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, program), args...)
	// The first node on the path is the pinned one.
	cmd.Env = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir(), "NO_COLOR=1"}
	cmd.Dir = t.TempDir()
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
