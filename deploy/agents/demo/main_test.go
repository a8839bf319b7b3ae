package main

import (
	"errors"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
)

// build compiles the agent.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// session is a running demo agent.
type session struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	frames *agentproto.Scanner
}

func open(t *testing.T, binary string) *session {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A hanging agent is killed, and the end of its output fails the test.
	killer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		killer.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &session{t, cmd, stdin, agentproto.NewScanner(stdout, io.Discard)}
}

func (s *session) send(inputs ...agentproto.Input) {
	s.t.Helper()
	for _, in := range inputs {
		line, err := agentproto.Encode(in)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.stdin.Write(line); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *session) next() agentproto.Frame {
	s.t.Helper()
	f, err := s.frames.Next()
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// end closes the agent's input and returns its remaining frames and exit code.
func (s *session) end() (rest []agentproto.Frame, code int) {
	s.t.Helper()
	if err := s.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		s.t.Fatal(err)
	}
	for {
		f, err := s.frames.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			s.t.Fatal(err)
		}
		rest = append(rest, f)
	}
	_ = s.cmd.Wait()
	return rest, s.cmd.ProcessState.ExitCode()
}

func prompt(texts ...string) string {
	var b strings.Builder
	b.WriteString(`<turn jid="telegram:1"/><messages>`)
	for _, text := range texts {
		b.WriteString(`<message id="1" name="a">` + html.EscapeString(text) + `</message>`)
	}
	b.WriteString(`</messages>`)
	return b.String()
}

func first(id, sessionID, text string) agentproto.Start {
	return agentproto.Start{
		TurnID: id, Prompt: prompt(text), SessionID: sessionID, Topic: "#deploy", EngageTopic: "77", Surface: "telegram-topic",
	}
}

func message(id string, texts ...string) agentproto.Message {
	return agentproto.Message{TurnID: id, Prompt: prompt(texts...)}
}

func TestDemo_EachInstruction_AnswersInOrder(t *testing.T) {
	binary := build(t)
	t.Run("conversation", func(t *testing.T) {
		s := open(t, binary)
		s.send(first("1", "", "<b> & hello"))
		f := s.next()
		if !strings.HasPrefix(f.NewSessionID, "demo-") {
			t.Errorf("session %q", f.NewSessionID)
		}
		want := "You said: <b> & hello\n(topic #deploy · place 77 · surface telegram-topic · turn 1)"
		if diff := cmp.Diff(agentproto.Frame{Status: "ok", Result: want, TurnID: "1", NewSessionID: f.NewSessionID}, f); diff != "" {
			t.Errorf("first frame (-want +got):\n%s", diff)
		}
		s.send(message("2", "one", "two"))
		want = "You said: one\nYou said: two\n(topic #deploy · place 77 · surface telegram-topic · turn 2)"
		if diff := cmp.Diff(agentproto.Frame{Status: "ok", Result: want, TurnID: "2"}, s.next()); diff != "" {
			t.Errorf("second frame (-want +got):\n%s", diff)
		}
		if rest, code := s.end(); len(rest) != 0 || code != 0 {
			t.Errorf("then %+v, exit code %d", rest, code)
		}
	})
	t.Run("instructions", func(t *testing.T) {
		s := open(t, binary)
		s.send(first("1", "old", "frames 3"), message("2", "silent"), message("3", "first", "frames 2"), message("4", "error"))
		rest, code := s.end()
		more := new(bool)
		tail := "\n(topic #deploy · place 77 · surface telegram-topic · turn "
		want := []agentproto.Frame{
			{Status: "ok", TurnID: "1", Final: more, Result: "1/3 You said: frames 3" + tail + "1)"},
			{Status: "ok", TurnID: "1", Final: more, Result: "2/3 You said: frames 3" + tail + "1)"},
			{Status: "ok", TurnID: "1", Result: "3/3 You said: frames 3" + tail + "1)"},
			{Status: "ok", TurnID: "2"},
			{Status: "ok", TurnID: "3", Final: more, Result: "1/2 You said: first\nYou said: frames 2" + tail + "3)"},
			{Status: "ok", TurnID: "3", Result: "2/2 You said: first\nYou said: frames 2" + tail + "3)"},
			{Status: "error", TurnID: "4", Error: "error requested"},
		}
		if diff := cmp.Diff(want, rest); diff != "" || code != 1 {
			t.Errorf("exit code %d, frames (-want +got):\n%s", code, diff)
		}
	})
	t.Run("system text", func(t *testing.T) {
		s := open(t, binary)
		start := first("1", "", "system")
		start.System = "# Where you are\n<here>"
		s.send(start, message("2", "slow 0 system"))
		rest, code := s.end()
		if len(rest) != 2 || code != 0 || rest[0].Result != start.System || rest[1].Result != start.System {
			t.Errorf("exit code %d, frames %+v", code, rest)
		}
	})
	t.Run("no system text", func(t *testing.T) {
		s := open(t, binary)
		s.send(first("1", "", "system"))
		if rest, code := s.end(); len(rest) != 1 || code != 0 || rest[0].Result != "The start line has no system text." {
			t.Errorf("exit code %d, frames %+v", code, rest)
		}
	})
	t.Run("long parts are within the limits of a turn", func(t *testing.T) {
		s := open(t, binary)
		s.send(first("1", "old", "frames 9\n"+strings.Repeat("long ", 50_000)))
		rest, code := s.end()
		size := 0
		for _, f := range rest {
			if f.More() {
				size += len(f.Result)
			}
		}
		if len(rest) != 9 || code != 0 || size > agentproto.MaxParts {
			t.Errorf("%d frames, exit code %d, %d bytes before the last frame", len(rest), code, size)
		}
	})
	t.Run("errors end the run", func(t *testing.T) {
		for text, want := range map[string]agentproto.Frame{
			"error transient 40": {Kind: "transient", RetryAfter: 40},
			"error permanent":    {Kind: "permanent"},
			"error session":      {Kind: "session"},
		} {
			s := open(t, binary)
			s.send(first("1", "old", text), message("2", "left to the next run"))
			rest, code := s.end()
			want.Status, want.TurnID, want.Error = "error", "1", "error requested"
			if diff := cmp.Diff([]agentproto.Frame{want}, rest); diff != "" || code != 1 {
				t.Errorf("%s: exit code %d, frames (-want +got):\n%s", text, code, diff)
			}
		}
	})
	t.Run("an error with an answer", func(t *testing.T) {
		s := open(t, binary)
		s.send(first("1", "old", "error result"), message("2", "silent"))
		rest, code := s.end()
		want := []agentproto.Frame{
			{Status: "error", TurnID: "1", Error: "error requested", Result: "You said: error result\n(topic #deploy · place 77 · surface telegram-topic · turn 1)"},
			{Status: "ok", TurnID: "2"},
		}
		if diff := cmp.Diff(want, rest); diff != "" || code != 0 {
			t.Errorf("exit code %d, frames (-want +got):\n%s", code, diff)
		}
	})
	t.Run("crash", func(t *testing.T) {
		s := open(t, binary)
		s.send(first("1", "old", "crash"))
		if rest, code := s.end(); len(rest) != 0 || code != 1 {
			t.Errorf("frames %+v, exit code %d", rest, code)
		}
	})
	t.Run("slow answers in order after the end of input", func(t *testing.T) {
		s := open(t, binary)
		began := time.Now()
		s.send(first("1", "old", "slow 0.3"), message("2", "fast"))
		rest, code := s.end()
		if len(rest) != 2 || rest[0].TurnID != "1" || rest[1].TurnID != "2" || code != 0 {
			t.Errorf("frames %+v, exit code %d", rest, code)
		}
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("answered after %v, want 300ms", took)
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		s := open(t, binary)
		s.send(first("1", "old", "slow 600"), message("2", "after it"), agentproto.Interrupt{}, message("3", "go on"))
		if rest, code := s.end(); len(rest) != 1 || rest[0].TurnID != "3" || code != 0 {
			t.Errorf("frames %+v, exit code %d", rest, code)
		}
	})
	t.Run("interrupt without a turn", func(t *testing.T) {
		s := open(t, binary)
		s.send(agentproto.Interrupt{})
		if rest, code := s.end(); len(rest) != 0 || code != 0 {
			t.Errorf("frames %+v, exit code %d", rest, code)
		}
	})
	t.Run("an invalid line", func(t *testing.T) {
		s := open(t, binary)
		s.send(first("1", "old", "hi"))
		if _, err := io.WriteString(s.stdin, "nonsense\n"); err != nil {
			t.Fatal(err)
		}
		if rest, code := s.end(); len(rest) != 1 || code != 1 {
			t.Errorf("frames %+v, exit code %d", rest, code)
		}
	})
}
