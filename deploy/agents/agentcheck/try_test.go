package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

// terminal is a user at a terminal.
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

// reads reads lines until one contains text.
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

// ends closes the input and returns the result of Try.
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
	term.types("/system")
	term.reads("  ## What you get")
	term.types("again")
	term.reads("→ message, turn 2")
	term.reads("← turn 2, ")
	term.types("/stop")
	term.reads("→ interrupt")
	term.reads("the agent exited: exit code 0")
	term.types("/stop")
	term.reads("no run to stop")
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

func TestTry_Session_IsResumed(t *testing.T) {
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

func TestTry_NamesBreaches(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		"names another turn":    `! a frame names turn "turn-1"`,
		"invalid JSON":          "! a malformed frame",
		"indents delimiters":    "! a malformed delimiter",
		"exits at turn 2":       "! it exited with turn 2 unanswered: exit code 3",
		"exits with an error":   "! it exited with an error after its last answer",
		"answers after the end": "! a frame after the end of input",
		"no frames":             "! it exited without a frame",
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
			if _, after, found := strings.Cut(term.text.String(), want); !found || !strings.Contains(after, "  fix: ") {
				t.Errorf("no %q with what to do in\n%s", want, term.text.String())
			}
		})
	}
}

func TestTry_FailedRun_DropsSession(t *testing.T) {
	t.Parallel()
	term := atTerminal(t, t.Context(), fakeAgent("fails turn 2"))
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

// A line typed while an interrupted run exits is for the next run.
func TestTry_AfterInterrupt_StartsNewRun(t *testing.T) {
	t.Parallel()
	term := atTerminal(t, t.Context(), fakeAgent("answers the interrupt"))
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
		t.Error("an answer to another run's turn counts as no breach")
	}
}

func TestTry_AgentFails_PrintsWhatGatedDoes(t *testing.T) {
	t.Parallel()
	term := atTerminal(t, t.Context(), fakeAgent("reports errors"))
	term.types("hello")
	term.reads("error: no key")
	term.reads("gated would end this run, drop its session")
	term.reads("the agent exited")
	term.types("again")
	term.reads("→ start, turn 2, without a session")
	if err := term.ends(); err != nil {
		t.Errorf("a reported error is not a breach: %v", err)
	}
}

func TestTry_ErrorOfKind_KeepsSession(t *testing.T) {
	t.Parallel()
	for how, want := range map[string][]string{
		"fails turn 2, transient": {"error, transient: no luck", "keep its session, and retry the turn after 7s"},
		"fails turn 2, permanent": {"error, permanent: no luck", "keep its session, and give the turn up"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			term := atTerminal(t, t.Context(), fakeAgent(how))
			term.types("hello")
			term.reads("session s")
			term.types("again")
			for _, line := range want {
				term.reads(line)
			}
			term.types("once more")
			term.reads("→ start, turn 3, session s")
			if err := term.ends(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTry_ErrorWithResult_IsAnAnswer(t *testing.T) {
	t.Parallel()
	term := atTerminal(t, t.Context(), fakeAgent("fails turn 2, with a result"))
	term.types("hello")
	term.reads("session s")
	term.types("again")
	term.reads("error: no luck")
	term.reads("half of it")
	term.reads("gated would send the result")
	term.types("once more")
	term.reads("→ message, turn 3")
	if err := term.ends(); err != nil {
		t.Error(err)
	}
}

func TestTry_ContextEnds_KillsAgent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	term := atTerminal(t, ctx, fakeAgent("ignores SIGTERM"))
	term.types("hello")
	term.reads("← turn 1")
	cancel()
	if err := term.ends(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
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
		{"try x", "", `unexpected argument "x"`, ""},
		{"try -h", "", flag.ErrHelp.Error(), "-session"},
		{"conform -wait 0s -- x", "", "must be above 0", ""},
		{"conform -nonsense -- x", "", "not defined", ""},
		{"try -session old -- " + self, "hello", "", "session old"},
		{"try -- " + self + " -v --", "hello", "", "agent:  exec " + self + " -v --\n"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out strings.Builder
			err := command(t.Context(), Agent{Env: fakeAgent("good").Env}, strings.Fields(tt.args), strings.NewReader(tt.in), &out)
			switch {
			case tt.wantErr == "" && err != nil, tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)):
				t.Errorf("error %v, want %q", err, tt.wantErr)
			case !strings.Contains(out.String(), tt.want):
				t.Errorf("no %q in\n%s", tt.want, out.String())
			}
			if refused := tt.wantErr != "" && tt.wantErr != flag.ErrHelp.Error(); refused != errors.As(err, new(usageError)) {
				t.Errorf("error %T", err)
			}
		})
	}
}

func TestTry_Question_IsAnsweredAtTheTerminal(t *testing.T) {
	t.Parallel()
	term := atTerminal(t, t.Context(), fakeAgent("asks"))
	term.types("hi")
	term.reads("1. red")
	term.reads("Answer the question")
	term.types("2")
	term.reads("chosen: green answered")
	term.types("again")
	term.reads("Answer the question")
	term.types("0")
	term.reads("chosen:  expired")
	_ = term.in.Close()
	term.reads("end of input")
	for range term.out { // until it has exited
	}
	if err := <-term.done; err != nil {
		t.Error(err)
	}
}
