package conformance

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"arizuko/pkg/daemon"
)

// terminal is somebody who types, and reads what is printed.
type terminal struct {
	t    *testing.T
	in   *io.PipeWriter
	out  chan string // its lines
	done chan error
	text strings.Builder
}

func atTerminal(t *testing.T, ctx context.Context, a Agent) *terminal {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	term := &terminal{t: t, in: inW, out: make(chan string, 10_000), done: make(chan error, 1)}
	go func() {
		err := a.Try(ctx, inR, outW)
		_ = outW.Close()
		_ = inR.Close()
		term.done <- err
	}()
	go func() {
		defer close(term.out)
		for lines := bufio.NewScanner(outR); lines.Scan(); {
			term.out <- lines.Text()
		}
	}()
	return term
}

func (term *terminal) types(line string) {
	term.t.Helper()
	if _, err := io.WriteString(term.in, line+"\n"); err != nil {
		term.t.Fatal(err)
	}
}

// reads reads on to a line that contains text.
func (term *terminal) reads(text string) {
	term.t.Helper()
	for line := range term.out {
		term.text.WriteString(line + "\n")
		if strings.Contains(line, text) {
			return
		}
	}
	term.t.Fatalf("no %q in\n%s", text, term.text.String())
}

// ends closes the input and returns what Try does.
func (term *terminal) ends() error {
	_ = term.in.Close()
	for line := range term.out {
		term.text.WriteString(line + "\n")
	}
	return <-term.done
}

func TestTry(t *testing.T) {
	t.Parallel()
	term := atTerminal(t, t.Context(), fakeAgent("good"))
	term.types("hello <b>")
	term.reads("→ start, turn 1, without a session")
	term.reads("hello &lt;b&gt;</message>")
	term.reads("← turn 1, ")
	term.types("again")
	term.reads("→ message, turn 2")
	term.reads("← turn 2, ")
	term.types("/stop")
	term.reads("→ interrupt")
	term.reads("the agent is gone: exit code 0")
	term.types("/stop")
	term.reads("nothing runs")
	term.types("once more")
	term.reads("→ start, turn 3, session s")
	term.reads("← turn 3, ")
	if err := term.ends(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"| err: answered turn 3", "→ end of input"} {
		if !strings.Contains(term.text.String(), want) {
			t.Errorf("no %q in\n%s", want, term.text.String())
		}
	}
	for _, not := range []string{"\x1b", "| run:"} {
		if strings.Contains(term.text.String(), not) {
			t.Errorf("%q in\n%s", not, term.text.String())
		}
	}
}

func TestTryWithASession(t *testing.T) {
	t.Parallel()
	agent := fakeAgent("good")
	agent.Session, agent.Dir = "old", t.TempDir()
	term := atTerminal(t, t.Context(), agent)
	term.types("hello")
	term.reads("→ start, turn 1, session old")
	if err := term.ends(); err != nil {
		t.Error(err)
	}
}

func TestTryNamesBreaches(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		"mistaken":    `! a frame names turn "turn-1"`,
		"broken":      "! a frame that cannot be read",
		"indenting":   "! a delimiter that is none",
		"short-lived": "! it ended with turn 2 unanswered: exit code 3",
		"sore":        "! it ended with an error after all was answered",
		"chatty":      "! a frame after the end of input",
		"silent":      "! it ended without a frame",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			term := atTerminal(t, t.Context(), fakeAgent(how))
			term.types("hello")
			term.types("again")
			err := term.ends()
			if err == nil || !strings.Contains(err.Error(), "breaches") {
				t.Errorf("error %v", err)
			}
			if _, after, found := strings.Cut(term.text.String(), want); !found || !strings.Contains(after, "  do: ") {
				t.Errorf("no %q with what to do in\n%s", want, term.text.String())
			}
		})
	}
}

func TestTryForgetsTheSessionOfAFailedRun(t *testing.T) {
	t.Parallel()
	term := atTerminal(t, t.Context(), fakeAgent("fickle"))
	term.types("hello")
	term.reads("session s")
	term.types("again")
	term.reads("error: no luck")
	term.types("once more")
	term.reads("→ start, turn 3, without a session")
	if err := term.ends(); err != nil {
		t.Error(err)
	}
}

// What is typed while an interrupted run is on its way out is for the next one.
func TestTryAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	term := atTerminal(t, t.Context(), fakeAgent("late"))
	term.types("hello")
	term.types("/stop")
	term.types("again")
	term.reads("← turn 1")
	if line := term.text.String(); !strings.HasSuffix(line, "too late: gated discards it\n") {
		t.Errorf("got\n%s", line)
	}
	term.reads("→ start, turn 2, without a session")
	term.types("/stop")
	if err := term.ends(); err == nil {
		t.Error("an answer to another run's turn is no breach")
	}
}

func TestTryTellsWhatGatedDoes(t *testing.T) {
	t.Parallel()
	term := atTerminal(t, t.Context(), fakeAgent("failing"))
	term.types("hello")
	term.reads("error: no key")
	term.reads("gated would end this run, forget its session")
	term.reads("the agent is gone")
	term.types("again")
	term.reads("→ start, turn 2, without a session")
	if err := term.ends(); err != nil {
		t.Errorf("an error that is told is no breach: %v", err)
	}
}

func TestTryIsKilled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	term := atTerminal(t, ctx, fakeAgent("stubborn"))
	term.types("hello")
	term.reads("← turn 1")
	cancel()
	if err := term.ends(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	environ := func() ([]string, error) { return fakeAgent("good").Env, nil }
	self := strings.TrimPrefix(fakeAgent("").Command, "exec ")
	for _, tt := range []struct {
		args    string
		in      string
		wantErr string
		want    string
	}{
		{"", "", "agent try", ""},
		{"run", "", `not "run"`, ""},
		{"--help", "", flag.ErrHelp.Error(), "agent conform"},
		{"try", "", "which command?", ""},
		{"try --", "", "which command?", ""},
		{"try x", "", `what is "x"?`, ""},
		{"try -h", "", flag.ErrHelp.Error(), "-session"},
		{"conform -wait 0s -- x", "", "must be above 0", ""},
		{"conform -nonsense -- x", "", "not defined", ""},
		{"try -session old -- " + self, "hello", "", "session old"},
		{"try -- " + self + " -v --", "hello", "", "agent:  exec " + self + " -v --\n"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out strings.Builder
			err := Command(environ, strings.NewReader(tt.in))(t.Context(), strings.Fields(tt.args), &out)
			switch {
			case tt.wantErr == "" && err != nil, tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)):
				t.Errorf("error %v, want %q", err, tt.wantErr)
			case !strings.Contains(out.String(), tt.want):
				t.Errorf("no %q in\n%s", tt.want, out.String())
			}
			var exit *daemon.ExitError
			if refused := errors.As(err, &exit); refused && exit.Code != daemon.ExitRefused {
				t.Errorf("exit code %d", exit.Code)
			}
		})
	}
}
