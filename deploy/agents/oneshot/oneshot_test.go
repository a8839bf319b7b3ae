package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
)

func TestParser_RecordedOutput_AnswerSessionFailure(t *testing.T) {
	for file, want := range map[string]parser{
		"gemini-tool":   {text: "You said something", session: "c68ab4e2-1bcd-4bb8-acfd-65bfa23e40d0"},
		"gemini-failed": {session: "fb866633-5196-4a19-a6be-6b662c18d40f", failure: `[API Error: {"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}]`},
		"gemini-loop":   {session: "8e3a5e4f-696c-4943-bf87-9af9da23ee28", failure: "Loop detected, stopping execution"},
	} {
		output, err := os.ReadFile(filepath.Join("testdata", file+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(file, "-")
		for _, size := range []int{1, 100, len(output)} { // of a read
			got := parser{read: dialectOf("/opt/" + name).read}
			in := bytes.NewBufferString("not JSON\n" + string(output))
			for in.Len() > 0 {
				if _, err := got.Write(in.Next(size)); err != nil {
					t.Fatal(err)
				}
			}
			got.end()
			if got.text != want.text || got.session != want.session || got.failure != want.failure {
				t.Errorf("%s, %d bytes at once: %+v", file, size, got)
			}
			if answer := got.answer(); strings.HasSuffix(file, "-tool") && answer != "Let me look.\n\nYou said something" {
				t.Errorf("%s: answer %q", file, answer)
			}
		}
	}
}

// Commands without sessions need the system text in each turn, others once in a session.
func TestAgent_SystemText_BeginsSession(t *testing.T) {
	for name, session := range map[string]string{"gemini": "", "plain": "", "resumed": "01a1ff98-089e-7af1-ba12-86303db8081f"} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			program := name
			if name == "resumed" {
				program = "gemini"
				if err := os.WriteFile(session, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a := start(t, program)
			a.Send(agentproto.Start{TurnID: "1", Prompt: "one", SessionID: session, System: "You are here."})
			a.Next()
			a.Send(agentproto.Message{TurnID: "2", Prompt: "two"})
			a.Next()
			a.WantExit(0)
			want := []string{"You are here.\none", "two"}
			switch name {
			case "plain":
				want[1] = "You are here.\ntwo"
			case "resumed":
				want[0] = "one"
			}
			var got []string
			for _, c := range calls(t) {
				got = append(got, c.Prompt)
			}
			if !slices.Equal(got, want) {
				t.Errorf("prompts %q, want %q", got, want)
			}
		})
	}
}

func TestParser_EndlessLine_IsBounded(t *testing.T) {
	r := parser{read: readGemini}
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range maxLine / len(chunk) {
		if _, err := r.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Write(chunk); err == nil {
		t.Error("an endless line is buffered without limit")
	}
}

func TestDialect_Args_OfEachCommand(t *testing.T) {
	extra := []string{"--x", "y"}
	for _, tt := range []struct {
		program, model, session, want string
	}{
		{"gemini", "", "", "--output-format=stream-json --skip-trust --x y --prompt="},
		{"/opt/gemini", "m", "s", "--output-format=stream-json --skip-trust --x y --model=m --resume=s --prompt="},
		{"llm", "m", "s", "--x y"},
	} {
		got := strings.Join(dialectOf(tt.program).args(extra, tt.model, tt.session), " ")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.program, diff)
		}
	}
	if diff := cmp.Diff([]string{"--x", "y"}, extra); diff != "" {
		t.Errorf("the operator's arguments have changed: %s", diff)
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
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "AGENT_MODEL=m"}
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

func TestAgent_NextRun_ResumesSession(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "gemini")
	a.Send(agentproto.Start{TurnID: "1", Prompt: "one"})
	a.Send(agentproto.Message{TurnID: "2", Prompt: "two"})
	session := a.WantAnswer("1", "heard one").NewSessionID
	if again := a.WantAnswer("2", "heard two").NewSessionID; session != lines["gemini"].session || again != session {
		t.Errorf("sessions %q, %q", session, again)
	}
	a.WantExit(0)
	b := start(t, "gemini")
	b.Send(agentproto.Start{TurnID: "3", Prompt: "three", SessionID: session})
	b.WantAnswer("3", "heard three")
	b.WantExit(0)
	var sessions []string
	for _, c := range calls(t) {
		sessions = append(sessions, resumed(c.Args))
	}
	if diff := cmp.Diff([]string{"", session, session}, sessions); diff != "" {
		t.Errorf("resumed (-want +got):\n%s", diff)
	}
}

func TestAgent_SessionCannotBeResumed_ReportsIt(t *testing.T) {
	const gone = "11111111-1111-4111-8111-111111111111"
	for _, session := range []string{gone, "demo-abc", "--version"} {
		t.Run(session, func(t *testing.T) {
			t.Chdir(t.TempDir())
			a := start(t, "gemini")
			a.Send(agentproto.Start{TurnID: "1", Prompt: "one", SessionID: session})
			f := a.Next()
			if f.Status != agentproto.StatusError || f.Kind != agentproto.KindSession || !strings.Contains(f.Error, "the session cannot be resumed: ") {
				t.Errorf("got %+v", f)
			}
			a.WantExit(1)
			if session == gone {
				return
			}
			if _, err := os.Stat(callsFile); err == nil {
				t.Error("the command was called")
			}
		})
	}
}

// Lines of earlier versions name the one that replaces them, and run nothing.
func TestAgent_ReplacedCommand_NamesTheNewLine(t *testing.T) {
	for name, want := range map[string]string{"codex": "/acp codex-acp'", "/opt/opencode": "/acp /opt/opencode acp'"} {
		a := startCommand(t, name)
		a.Send(agentproto.Start{TurnID: "1", Prompt: "one", SessionID: "01a1ff98-089e-7af1-ba12-86303db8081f"})
		f := a.Next()
		if f.Kind != agentproto.KindPermanent || !strings.Contains(f.Error, "set AGENT_COMMAND, or agent.command of the group, to 'exec /") || !strings.Contains(f.Error, want) {
			t.Errorf("%s: got %+v", name, f)
		}
		a.WantExit(1)
	}
}

func TestAgent_PlainCommand_OutputIsAnswer(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "plain")
	a.Send(agentproto.Start{TurnID: "1", Prompt: "one", SessionID: "of another agent"})
	if f := a.WantAnswer("1", `"heard one"`); f.NewSessionID != "" {
		t.Errorf("session %q", f.NewSessionID)
	}
	a.WantExit(0)
	if diff := cmp.Diff([]call{{[]string{"--extra"}, "one"}}, calls(t)); diff != "" {
		t.Error(diff)
	}
}

func TestAgent_FailingCommand_EndsRunWithError(t *testing.T) {
	for _, name := range []string{"gemini", "plain"} {
		for order, tt := range map[string]struct {
			kind agentproto.Kind
			want string
		}{
			"fail":    {"permanent", name + " failed: bad key"},
			"refuse":  {"permanent", name + " failed: bad key"}, // with exit code 0
			"crash":   {"transient", name + " failed: Error: out of luck"},
			"limit":   {"transient", name + " failed: Error: 429, please try again in 20s"},
			"half":    {"transient", name + " failed: Loop detected"}, // an error after a tool call
			"empty":   {"transient", name + " failed: it ended without an answer"},
			"die":     {"transient", name + " failed: a warning"},
			"hang up": {"transient", name + " failed: it closed its output and ran on for 3s: it was terminated"},
		} {
			switch {
			case name == "plain" && order == "fail":
				tt.kind, tt.want = "transient", "plain failed: a warning"
			case name == "plain" && order == "refuse":
				tt.kind, tt.want = "transient", "plain failed: it ended without an answer"
			case name == "plain" && order == "half":
				continue // which has no events
			}
			t.Run(name+" "+order, func(t *testing.T) {
				t.Chdir(t.TempDir())
				a := start(t, name)
				a.Send(agentproto.Start{TurnID: "1", Prompt: order})
				f := a.Next()
				if f.Status != agentproto.StatusError || f.TurnID != "1" || f.Kind != tt.kind || !strings.HasPrefix(f.Error, tt.want) || f.Result != "" {
					t.Errorf("got %+v, want %+v", f, tt)
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
}

func TestAgent_Order_IsAnswered(t *testing.T) {
	for order, want := range map[string]string{
		"answer and hang up":                  "heard answer and hang up", // and stays: it is ended
		"<internal>nothing to say</internal>": "heard <internal>nothing to say</internal>",
		"<message>@secret me@x.org</message>": "heard <message>&#64;secret me&#64;x.org</message>", // Gemini would read the file
	} {
		t.Chdir(t.TempDir())
		a := start(t, "gemini")
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
	a := start(t, "gemini")
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
	a := start(t, "gemini")
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
