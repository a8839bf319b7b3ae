// Package agenttest runs agents in tests: it gives them lines and reads their frames and events.
package agenttest

import (
	"bytes"
	"errors"
	"html"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
)

// Run is a running agent. Its methods fail the test and belong on the test's goroutine.
type Run struct {
	T       *testing.T
	Cmd     *exec.Cmd
	Stdin   io.WriteCloser
	Outputs *agentproto.Scanner
	Log     *Log               // stderr, and stdout outside of frames
	Frames  []agentproto.Frame // that were read
	Events  []agentproto.Event // that were read by Next and Until
}

// Start starts an agent. One that runs longer than maxWait is killed, and the end of its output fails the test. The log
// is shown if the test fails.
func Start(t *testing.T, cmd *exec.Cmd, maxWait time.Duration) *Run {
	t.Helper()
	r := &Run{T: t, Cmd: cmd, Log: &Log{}}
	cmd.Stderr = r.Log
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
	r.Stdin, r.Outputs = stdin, agentproto.NewScanner(stdout, r.Log)
	killer := time.AfterFunc(maxWait, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		killer.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of the agent:\n%s", r.Log)
		}
	})
	return r
}

// Send writes lines to the agent.
func (r *Run) Send(inputs ...agentproto.Input) {
	r.T.Helper()
	for _, in := range inputs {
		line, err := agentproto.Encode(in)
		if err != nil {
			r.T.Fatal(err)
		}
		if _, err := r.Stdin.Write(line); err != nil {
			r.T.Fatal(err)
		}
	}
}

// Next returns the next frame; without one the test fails.
func (r *Run) Next() agentproto.Frame {
	r.T.Helper()
	f, err := r.next()
	if err != nil {
		r.T.Fatalf("no frame: %v", err)
	}
	return f
}

func (r *Run) next() (agentproto.Frame, error) {
	for {
		out, err := r.Outputs.Next()
		if err != nil {
			return agentproto.Frame{}, err
		}
		if out.Event != nil {
			r.Events = append(r.Events, *out.Event)
		}
		if out.Frame != nil {
			r.Frames = append(r.Frames, *out.Frame)
			return *out.Frame, nil
		}
	}
}

// Until returns the next event that is as wanted. A frame before it fails the test.
func (r *Run) Until(what string, wanted func(agentproto.Event) bool) agentproto.Event {
	r.T.Helper()
	for {
		out, err := r.Outputs.Next()
		switch {
		case err != nil:
			r.T.Fatalf("no %s: %v", what, err)
		case out.Frame != nil:
			r.T.Fatalf("no %s, but %+v", what, *out.Frame)
		case out.Event != nil:
			r.Events = append(r.Events, *out.Event)
			if wanted(*out.Event) {
				return *out.Event
			}
		}
	}
}

// Question is the next question to users. A frame before it fails the test.
func (r *Run) Question() agentproto.Ask {
	r.T.Helper()
	return *r.Until("question", func(e agentproto.Event) bool { return e.Ask != nil }).Ask
}

// Reply answers a question as a user; change changes the line.
func (r *Run) Reply(turnID string, a agentproto.Ask, option string, change ...func(*agentproto.Answer)) {
	r.T.Helper()
	line := agentproto.Answer{TurnID: turnID, AskID: a.ID, Option: option, Reason: agentproto.AskAnswered,
		By: "telegram:1", PayloadHash: a.PayloadHash}
	for _, f := range change {
		f(&line)
	}
	r.Send(line)
}

// End closes the agent's input and returns its remaining frames and exit code.
func (r *Run) End() (rest []agentproto.Frame, code int) {
	r.T.Helper()
	if err := r.Stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		r.T.Fatal(err)
	}
	for {
		f, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.T.Fatal(err)
		}
		rest = append(rest, f)
	}
	_ = r.Cmd.Wait()
	return rest, r.Cmd.ProcessState.ExitCode()
}

// WantExit is End for an agent without remaining frames.
func (r *Run) WantExit(want int) {
	r.T.Helper()
	if rest, code := r.End(); len(rest) != 0 || code != want {
		r.T.Errorf("remaining frames %+v, exit code %d, want none and %d", rest, code, want)
	}
}

// WantAnswer fails the test unless the next frame answers a turn with that text. It returns the frame.
func (r *Run) WantAnswer(turnID, text string) agentproto.Frame {
	r.T.Helper()
	f := r.Next()
	if f.Status != agentproto.StatusOK || f.TurnID != turnID || f.Result != text {
		r.T.Errorf("got %+v, want turn %s answered %q", f, turnID, text)
	}
	return f
}

// WantError fails the test unless the next frame is an error of a turn, of that kind, that contains that text. It
// returns the frame.
func (r *Run) WantError(turnID string, kind agentproto.Kind, words string) agentproto.Frame {
	r.T.Helper()
	f := r.Next()
	if f.Status != agentproto.StatusError || f.TurnID != turnID || f.Kind != kind || !strings.Contains(f.Error, words) {
		r.T.Errorf("got %+v, want turn %s to fail, %s, with %q", f, turnID, kind, words)
	}
	if strings.ContainsAny(f.Error, "{}\n") {
		r.T.Errorf("not readable for operators: %q", f.Error)
	}
	if kind == agentproto.KindSession && f.NewSessionID != "" {
		r.T.Errorf("it names the lost session %s", f.NewSessionID)
	}
	return f
}

// Prompt is a prompt with messages.
func Prompt(texts ...string) string {
	var b strings.Builder
	b.WriteString(`<turn jid="telegram:1" place=""/><messages>`)
	for _, text := range texts {
		b.WriteString(`<message id="1" name="a">` + html.EscapeString(text) + `</message>`)
	}
	b.WriteString(`</messages>`)
	return b.String()
}

// First is the line that starts a run.
func First(id, sessionID, text string) agentproto.Start {
	return agentproto.Start{TurnID: id, Prompt: Prompt(text), SessionID: sessionID}
}

// Further is the line of a further turn.
func Further(id string, texts ...string) agentproto.Message {
	return agentproto.Message{TurnID: id, Prompt: Prompt(texts...)}
}

// Foldable is the line of a further turn that may be folded into the one under way.
func Foldable(id, text string) agentproto.Message {
	m := Further(id, text)
	m.Fold = true
	return m
}

// Log is a buffer that is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
