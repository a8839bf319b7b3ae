package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
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

func TestParser_Answer_JoinsTexts(t *testing.T) {
	for name, tt := range map[string]struct {
		texts []string
		want  string
	}{
		"several":                  {[]string{"a", " b ", "c"}, "a\n\nb\n\nc"},
		"a tag that is not closed": {[]string{"a\n<think>hm", "b"}, "a\n\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			var p parser
			for _, text := range tt.texts {
				p.apply(event{ends: true})
				p.apply(event{text: text[:len(text)/2]})
				p.apply(event{text: text[len(text)/2:]})
			}
			if got := p.answer(); got != tt.want {
				t.Errorf("got %.100q, want %.100q", got, tt.want)
			}
		})
	}
}

func TestAgent_FailureAfterToolCall_AnswersNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "gemini")
	a.in <- agentproto.Start{TurnID: "1", Prompt: "half"}
	if f := a.frame(); f.Status != agentproto.StatusError || f.Result != "" || !strings.Contains(f.Error, "Loop detected") {
		t.Errorf("got %+v", f)
	}
	if err := <-a.done; err == nil {
		t.Error("the run has not failed")
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
			a.in <- agentproto.Start{TurnID: "1", Prompt: "one", SessionID: session, System: "You are here."}
			a.frame()
			a.in <- agentproto.Message{TurnID: "2", Prompt: "two"}
			a.frame()
			if err := a.closeInput(); err != nil {
				t.Error(err)
			}
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

// agent is a run of the agent in this process. Its command is a helper process.
type agent struct {
	t      *testing.T
	in     chan agentproto.Input
	frames *agentproto.Scanner
	log    *bytes.Buffer // to be read after its end
	done   chan error
	stop   context.CancelFunc
}

// start starts an agent in the working folder of the test, which is the folder of its group.
func start(t *testing.T, name string) *agent {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, program)
	}
	if err != nil {
		t.Fatal(err)
	}
	return startCommand(t, program)
}

func startCommand(t *testing.T, program string) *agent {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	a := &agent{
		t: t, in: make(chan agentproto.Input), log: &bytes.Buffer{}, done: make(chan error, 1), stop: stop,
		frames: agentproto.NewScanner(r, io.Discard),
	}
	lines, input := io.Pipe()
	go func() {
		defer input.Close()
		for in := range a.in {
			line, err := agentproto.Encode(in)
			if err == nil {
				_, err = input.Write(line)
			}
			if err != nil {
				return // the run has ended
			}
		}
	}()
	go func() {
		c := newCLI(program, []string{"--extra"}, "m", a.log)
		a.done <- agentproto.Serve(ctx, lines, w, agentproto.Agent{Answer: c.answer, Log: a.log})
		w.Close()
		lines.Close()
	}()
	t.Cleanup(func() { stop(); r.Close() })
	return a
}

func (a *agent) frame() agentproto.Frame {
	a.t.Helper()
	f, err := a.frames.NextFrame()
	if err != nil {
		a.t.Fatalf("no frame: %v", err)
	}
	return f
}

// wantAnswer fails the test unless the next frame answers a turn with that text.
func (a *agent) wantAnswer(turn, text string) agentproto.Frame {
	a.t.Helper()
	f := a.frame()
	if f.Status != agentproto.StatusOK || f.TurnID != turn || f.Result != text {
		a.t.Errorf("got %+v, want turn %s answered %q", f, turn, text)
	}
	return f
}

// closeInput closes the input and returns the error of the run.
func (a *agent) closeInput() error {
	a.t.Helper()
	close(a.in)
	if f, err := a.frames.NextFrame(); err != io.EOF {
		a.t.Errorf("unexpected frame: %+v, %v", f, err)
	}
	return <-a.done
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
	a.in <- agentproto.Start{TurnID: "1", Prompt: "one"}
	a.in <- agentproto.Message{TurnID: "2", Prompt: "two"}
	session := a.wantAnswer("1", "heard one").NewSessionID
	if again := a.wantAnswer("2", "heard two").NewSessionID; session != lines["gemini"].session || again != session {
		t.Errorf("sessions %q, %q", session, again)
	}
	if err := a.closeInput(); err != nil {
		t.Error(err)
	}
	b := start(t, "gemini")
	b.in <- agentproto.Start{TurnID: "3", Prompt: "three", SessionID: session}
	b.wantAnswer("3", "heard three")
	if err := b.closeInput(); err != nil {
		t.Error(err)
	}
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
			a.in <- agentproto.Start{TurnID: "1", Prompt: "one", SessionID: session}
			f := a.frame()
			if f.Status != agentproto.StatusError || f.Kind != agentproto.KindSession || !strings.Contains(f.Error, "cannot resume the session") {
				t.Errorf("got %+v", f)
			}
			if err := <-a.done; err == nil {
				t.Error("the run has not failed")
			}
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
		a.in <- agentproto.Start{TurnID: "1", Prompt: "one", SessionID: "01a1ff98-089e-7af1-ba12-86303db8081f"}
		f := a.frame()
		if f.Kind != agentproto.KindPermanent || !strings.Contains(f.Error, "set AGENT_COMMAND, or agent.command of the group, to 'exec /") || !strings.Contains(f.Error, want) {
			t.Errorf("%s: got %+v", name, f)
		}
		if err := <-a.done; err == nil {
			t.Errorf("%s: the run has not failed", name)
		}
	}
}

func TestAgent_PlainCommand_OutputIsAnswer(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "plain")
	a.in <- agentproto.Start{TurnID: "1", Prompt: "one", SessionID: "of another agent"}
	if f := a.wantAnswer("1", `"heard one"`); f.NewSessionID != "" {
		t.Errorf("session %q", f.NewSessionID)
	}
	if err := a.closeInput(); err != nil {
		t.Error(err)
	}
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
			"empty":   {"transient", name + " failed: it ended without an answer"},
			"die":     {"transient", name + " failed: a warning"},
			"hang up": {"transient", name + " failed: it closed its output and ran on for 3s: it was terminated"},
		} {
			switch {
			case name == "plain" && order == "fail":
				tt.kind, tt.want = "transient", "plain failed: a warning"
			case name == "plain" && order == "refuse":
				tt.kind, tt.want = "transient", "plain failed: it ended without an answer"
			}
			t.Run(name+" "+order, func(t *testing.T) {
				t.Chdir(t.TempDir())
				a := start(t, name)
				a.in <- agentproto.Start{TurnID: "1", Prompt: order}
				f := a.frame()
				if f.Status != agentproto.StatusError || f.TurnID != "1" || f.Kind != tt.kind || !strings.HasPrefix(f.Error, tt.want) {
					t.Errorf("got %+v, want %+v", f, tt)
				}
				if (f.RetryAfter == 20) != (order == "limit") {
					t.Errorf("retry after %v", f.RetryAfter)
				}
				if err := <-a.done; err == nil {
					t.Error("the run has not failed")
				}
				if !strings.Contains(a.log.String(), "a warning") {
					t.Errorf("log %q", a.log)
				}
			})
		}
	}
}

func TestAgent_CommandAnswersAndStays_IsEnded(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "gemini")
	a.in <- agentproto.Start{TurnID: "1", Prompt: "answer and hang up"}
	a.wantAnswer("1", "heard answer and hang up")
	if err := a.closeInput(); err != nil {
		t.Error(err)
	}
}

func TestAgent_HiddenText_IsAnswer(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "gemini")
	a.in <- agentproto.Start{TurnID: "1", Prompt: "<internal>nothing to say</internal>"}
	a.wantAnswer("1", "heard <internal>nothing to say</internal>")
	if err := a.closeInput(); err != nil {
		t.Error(err)
	}
}

func TestAgent_MissingCommand_EndsRunWithError(t *testing.T) {
	t.Chdir(t.TempDir())
	a := startCommand(t, "no-such-program")
	a.in <- agentproto.Start{TurnID: "1", Prompt: "one"}
	if f := a.frame(); f.Kind != agentproto.KindPermanent || f.Error != "no-such-program is not installed, or not in PATH" {
		t.Errorf("got %+v", f)
	}
}

func TestAgent_Interrupt_DropsOpenTurns(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "gemini")
	a.in <- agentproto.Start{TurnID: "1", Prompt: "slow"}
	a.in <- agentproto.Message{TurnID: "2", Prompt: "slow too"}
	a.in <- agentproto.Interrupt{}
	a.in <- agentproto.Message{TurnID: "3", Prompt: "three"}
	began := time.Now()
	a.wantAnswer("3", "heard three")
	if err := a.closeInput(); err != nil {
		t.Error(err)
	}
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
	a.in <- agentproto.Start{TurnID: "1", Prompt: "slow"}
	for { // until it runs
		if _, err := os.Stat(callsFile); err == nil {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case err := <-a.done:
			t.Fatalf("the command was not called: %v", err)
		}
	}
	a.stop()
	if f := a.frame(); f.Kind != agentproto.KindTransient || f.TurnID != "1" {
		t.Errorf("got %+v", f)
	}
	if err := <-a.done; !errors.Is(err, agentproto.ErrTerminated) {
		t.Errorf("error %v", err)
	}
}

func TestAgent_GeminiFileReference_IsEscaped(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, "gemini")
	a.in <- agentproto.Start{TurnID: "1", Prompt: "<message>@secret me@x.org</message>"}
	a.frame()
	if got := calls(t)[0].Prompt; got != "<message>&#64;secret me&#64;x.org</message>" {
		t.Errorf("prompt %q", got)
	}
}
