package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/need"
)

// maxWait is how long a test waits for anything; the machine may be busy.
const maxWait = 60 * time.Second

// agentBinary is the path of the agent, built by TestMain.
var agentBinary string

func TestMain(m *testing.M) {
	if script := os.Getenv("SCRIPT"); script != "" {
		os.Exit(fakeCLI(script))
	}
	os.Exit(withBinary(m.Run))
}

func withBinary(run func() int) int {
	dir, err := os.MkdirTemp("", "claude-agent-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	agentBinary = filepath.Join(dir, "claude")
	if out, err := exec.Command("go", "build", "-o", agentBinary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return run()
}

// realCLI is the Claude Code that this folder's package.json pins, or $CLAUDE_CLI.
func realCLI(t *testing.T) string {
	t.Helper()
	need.Full(t)
	path := os.Getenv("CLAUDE_CLI")
	if path == "" {
		path = filepath.Join("node_modules", ".bin", "claude")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run `make setup`, or name one in CLAUDE_CLI", err)
	}
	return path
}

// fixture is a group's folder, a home and a fake model.
type fixture struct {
	t       *testing.T
	model   *anthropic.Server
	key     string
	base    string
	home    string
	group   string
	command string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return fixtureWith(t, realCLI(t))
}

func fixtureWith(t *testing.T, command string) *fixture {
	t.Helper()
	model := anthropic.New(anthropic.Options{})
	base, err := model.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	return &fixture{
		t: t, model: model, key: model.Key(), base: base,
		home: t.TempDir(), group: t.TempDir(), command: command,
	}
}

// session is a running agent.
type session struct {
	*fixture
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	frames *agentproto.Scanner
	log    *buffer // stderr, and stdout outside the frames
	seen   []agentproto.Frame
}

// open starts the agent in the group's folder, with extra added to its environment.
func (r *fixture) open(extra ...string) *session {
	r.t.Helper()
	cmd := exec.Command(agentBinary)
	cmd.Dir = r.group
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "LANG=C.UTF-8", "TMPDIR=" + r.t.TempDir(),
		"CLAUDE_COMMAND=" + r.command, "ANTHROPIC_API_KEY=" + r.key, "ANTHROPIC_BASE_URL=" + r.base,
	}, extra...)
	s := &session{fixture: r, cmd: cmd, log: &buffer{}}
	cmd.Stderr = s.log
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		r.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	s.frames = agentproto.NewScanner(stdout, s.log)
	// A hanging agent is killed, and the end of its output fails the test.
	killer := time.AfterFunc(maxWait, func() { _ = cmd.Process.Kill() })
	r.t.Cleanup(func() {
		killer.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s.checkSecrets()
		if r.t.Failed() {
			r.t.Logf("log of the agent:\n%s", s.log)
		}
	})
	return s
}

// checkSecrets fails the test if credentials are in the agent's output.
func (s *session) checkSecrets() {
	s.t.Helper()
	for _, secret := range []string{s.key, s.model.Key(), mcpToken} {
		if secret == "" {
			continue
		}
		if strings.Contains(s.log.String(), secret) {
			s.t.Errorf("%q is in the log", secret)
		}
		for _, f := range s.seen {
			if strings.Contains(f.Result+f.Error, secret) {
				s.t.Errorf("%q is in the frame %+v", secret, f)
			}
		}
	}
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

// next returns the next frame; without one the test fails.
func (s *session) next() agentproto.Frame {
	s.t.Helper()
	f, err := s.frames.Next()
	if err != nil {
		s.t.Fatalf("no frame: %v", err)
	}
	s.seen = append(s.seen, f)
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
		s.seen = append(s.seen, f)
		rest = append(rest, f)
	}
	_ = s.cmd.Wait()
	return rest, s.cmd.ProcessState.ExitCode()
}

// wantExit is end for an agent without remaining frames.
func (s *session) wantExit(want int) {
	s.t.Helper()
	if rest, code := s.end(); len(rest) != 0 || code != want {
		s.t.Errorf("remaining frames %+v, exit code %d, want none and %d", rest, code, want)
	}
}

// wantAnswer fails the test unless the next frame answers a turn with that text.
func (s *session) wantAnswer(turnID, text string) agentproto.Frame {
	s.t.Helper()
	f := s.next()
	if f.Status != agentproto.StatusOK || f.TurnID != turnID || f.Result != text {
		s.t.Errorf("got %+v, want turn %s answered %q", f, turnID, text)
	}
	return f
}

// wantError fails the test unless the next frame is an error of a turn, of that kind, that contains that
// text. It returns the frame.
func (s *session) wantError(turnID string, kind agentproto.Kind, words string) agentproto.Frame {
	s.t.Helper()
	f := s.next()
	if f.Status != agentproto.StatusError || f.TurnID != turnID || f.Kind != kind || !strings.Contains(f.Error, words) {
		s.t.Errorf("got %+v, want turn %s to fail, %s, with %q", f, turnID, kind, words)
	}
	if strings.ContainsAny(f.Error, "{}\n") {
		s.t.Errorf("not readable for operators: %q", f.Error)
	}
	if kind == agentproto.KindSession && f.NewSessionID != "" {
		s.t.Errorf("it names the lost session %s", f.NewSessionID)
	}
	return f
}

// waitCall waits for a call of the model with an order.
func (s *session) waitCall(order string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), maxWait)
	defer cancel()
	if _, err := s.model.Wait(ctx, func(c anthropic.Call) bool { return c.Command == order }); err != nil {
		s.t.Fatalf("the model was not asked to %s: %v", order, err)
	}
}

// cliPID is the process id of the CLI.
func (s *session) cliPID() int {
	s.t.Helper()
	all := descendants(s.t, s.cmd.Process.Pid)
	if len(all) == 0 {
		s.t.Fatal("the agent has no child")
	}
	return all[0]
}

// descendants are the children of a process, their children, and so on.
func descendants(t *testing.T, pid int) (all []int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tasks {
		children, err := os.ReadFile(path)
		if err != nil {
			continue // an ended thread
		}
		for _, field := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			all = append(append(all, child), descendants(t, child)...)
		}
	}
	return all
}

func prompt(text string) string {
	return `<turn jid="telegram:1" place=""/><messages><message id="1" name="a">` + html.EscapeString(text) + `</message></messages>`
}

func first(id, sessionID, text string) agentproto.Start {
	return agentproto.Start{TurnID: id, Prompt: prompt(text), SessionID: sessionID}
}

func message(id, text string) agentproto.Message {
	return agentproto.Message{TurnID: id, Prompt: prompt(text)}
}

// buffer is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
