package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
)

func TestAgent_SystemText_BeginsEveryPrompt(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "plain")
	a.Send(agentproto.Start{TurnID: "1", Prompt: "one", System: "You are here."})
	a.Next()
	a.Send(agentproto.Message{TurnID: "2", Prompt: "two"})
	a.Next()
	a.WantExit(0)
	want := []call{{[]string{"--extra"}, "You are here.\none"}, {[]string{"--extra"}, "You are here.\ntwo"}}
	if diff := cmp.Diff(want, calls(t)); diff != "" {
		t.Error(diff)
	}
}

func TestOutput_Endless_IsBounded(t *testing.T) {
	var o output
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range maxOutput / len(chunk) {
		if _, err := o.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Write(chunk); err == nil {
		t.Error("endless output is buffered without limit")
	}
}

// Lines of earlier versions run the agent acp.
func TestACPCommand_OfProgramsThatSpeakIt(t *testing.T) {
	for program, want := range map[string][]string{
		"gemini":        {"gemini", "--acp", "--model=m"},
		"codex":         {"codex-acp"},
		"/opt/opencode": {"/opt/opencode", "acp"},
		"llm":           nil,
	} {
		if diff := cmp.Diff(want, acpCommand(program, []string{"--model=m"})); diff != "" {
			t.Errorf("%s: %s", program, diff)
		}
	}
}

// maxWait is how long a test waits for anything; the machine may be busy.
const maxWait = 3 * time.Minute

// start starts this program with a fake command, in the working folder of the test, which is the folder of its group.
func start(t *testing.T, name string) *agenttest.Run {
	t.Helper()
	return startCommand(t, linkToSelf(t, name))
}

func startCommand(t *testing.T, program string) *agenttest.Run {
	t.Helper()
	cmd := exec.Command(linkToSelf(t, "oneshot"), program, "--extra")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	return agenttest.Start(t, cmd, maxWait)
}

// linkToSelf is a name for the test binary, by which it acts as another program.
func linkToSelf(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func calls(t *testing.T) (all []call) {
	t.Helper()
	text, err := os.ReadFile(callsFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var c call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

func TestAgent_PlainCommand_OutputIsAnswer(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "plain")
	a.Send(agentproto.Start{TurnID: "1", Prompt: "one", SessionID: "of another agent"})
	if f := a.WantAnswer("1", "heard one"); f.NewSessionID != "" {
		t.Errorf("session %q", f.NewSessionID)
	}
	a.WantExit(0)
	if diff := cmp.Diff([]call{{[]string{"--extra"}, "one"}}, calls(t)); diff != "" {
		t.Error(diff)
	}
}

func TestAgent_FailingCommand_EndsRunWithError(t *testing.T) {
	for order, want := range map[string]string{
		"fail":    "plain failed: a warning",
		"refuse":  "plain failed: it ended without an answer", // with exit code 0
		"crash":   "plain failed: Error: out of luck",
		"limit":   "plain failed: Error: 429, please try again in 20s",
		"empty":   "plain failed: it ended without an answer",
		"die":     "plain failed: a warning",
		"hang up": "plain failed: it closed its output and ran on for 3s: it was terminated",
	} {
		t.Run(order, func(t *testing.T) {
			t.Chdir(t.TempDir())
			a := start(t, "plain")
			a.Send(agentproto.Start{TurnID: "1", Prompt: order})
			f := a.Next()
			if f.Status != agentproto.StatusError || f.TurnID != "1" || f.Kind != agentproto.KindTransient || !strings.HasPrefix(f.Error, want) || f.Result != "" {
				t.Errorf("got %+v, want %q", f, want)
			}
			if (f.RetryAfter == 20) != (order == "limit") {
				t.Errorf("retry after %v", f.RetryAfter)
			}
			a.WantExit(1)
			if !strings.Contains(a.Log.String(), "a warning") {
				t.Errorf("log %q", a.Log)
			}
		})
	}
}

func TestAgent_Order_IsAnswered(t *testing.T) {
	for order, want := range map[string]string{
		"answer and hang up":                  "heard answer and hang up", // and stays: it is ended
		"<internal>nothing to say</internal>": "heard <internal>nothing to say</internal>",
		"<message>@secret me@x.org</message>": "heard <message>&#64;secret me&#64;x.org</message>", // some commands would read the file
	} {
		t.Chdir(t.TempDir())
		a := start(t, "plain")
		a.Send(agentproto.Start{TurnID: "1", Prompt: order})
		a.WantAnswer("1", want)
		a.WantExit(0)
	}
}

func TestAgent_MissingCommand_EndsRunWithError(t *testing.T) {
	t.Chdir(t.TempDir())
	a := startCommand(t, "no-such-program")
	a.Send(agentproto.Start{TurnID: "1", Prompt: "one"})
	if f := a.Next(); f.Kind != agentproto.KindPermanent || f.Error != "no-such-program is not installed, or not in PATH" {
		t.Errorf("got %+v", f)
	}
}

func TestAgent_Interrupt_DropsOpenTurns(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "plain")
	a.Send(agentproto.Start{TurnID: "1", Prompt: "slow"})
	a.Send(agentproto.Message{TurnID: "2", Prompt: "slow too"})
	a.Send(agentproto.Interrupt{})
	a.Send(agentproto.Message{TurnID: "3", Prompt: "three"})
	began := time.Now()
	a.WantAnswer("3", "heard three")
	a.WantExit(0)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the interrupt took %s", took)
	}
	for _, c := range calls(t) {
		if c.Prompt == "slow too" {
			t.Error("a dropped turn was run")
		}
	}
}

func TestAgent_Terminated_StopsTurn(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "plain")
	a.Send(agentproto.Start{TurnID: "1", Prompt: "slow"})
	for end := time.Now().Add(maxWait); ; <-time.After(10 * time.Millisecond) { // until it runs
		if _, err := os.Stat(callsFile); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the command was not called")
		}
	}
	if err := a.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if f := a.Next(); f.Kind != agentproto.KindTransient || f.TurnID != "1" {
		t.Errorf("got %+v", f)
	}
	a.WantExit(1)
}
