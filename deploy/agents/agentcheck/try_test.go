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

// follow types and reads the lines of a script. Its last lines may come after the end of the input.
func (term *terminal) follow(script string) {
	term.t.Helper()
	for line := range strings.Lines(strings.TrimSpace(script)) {
		line = strings.TrimSpace(line)
		typed, types := strings.CutPrefix(line, "> ")
		switch {
		case types:
			term.types(typed)
		case line == "→ end of input":
			_ = term.in.Close()
			term.reads(line)
		default:
			term.reads(line)
		}
	}
}

// ends closes the input and returns the result of Try.
func (term *terminal) ends() error {
	_ = term.in.Close()
	for line := range term.out {
		term.text.WriteString(line + "\n")
	}
	return <-term.done
}

// In a script, lines with > are typed, and each other line must be a part of a line that is printed then.
func TestTry_Conversations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, how, script string
		wantErr           string
	}{
		{name: "turns, a stop, and the next run", how: "good", script: `
			> hello <b>
			→ start, turn 1, session old
			hello &lt;b&gt;</message>
			← turn 1,
			> /system
			  ## What you get
			> again
			→ message, turn 2
			← turn 2,
			> /stop
			→ interrupt
			the agent exited: exit code 0
			> /stop
			no run to stop
			> once more
			→ start, turn 3, session old
			| err: answered turn 3
			→ end of input`},
		{name: "a failed run drops its session", how: "fails turn 2", script: `
			> hello
			session s
			> again
			error: no luck
			> once more
			→ start, turn 3, without a session`},
		{name: "an error of the first turn is no breach", how: "reports errors", script: `
			> hello
			error: no key
			gated would end this run, drop its session
			the agent exited
			> again
			→ start, turn 2, without a session`},
		{name: "a transient error keeps the session", how: "fails turn 2, transient", script: `
			> hello
			session s
			> again
			error, transient: no luck
			keep its session, and retry the turn after 7s
			> once more
			→ start, turn 3, session s`},
		{name: "a permanent error keeps the session", how: "fails turn 2, permanent", script: `
			> hello
			session s
			> again
			error, permanent: no luck
			keep its session, and give the turn up
			> once more
			→ start, turn 3, session s`},
		{name: "an error with a result is an answer", how: "fails turn 2, with a result", script: `
			> hello
			session s
			> again
			error: no luck
			half of it
			gated would send the result
			> once more
			→ message, turn 3`},
		// A line typed while an interrupted run exits is for the next run. An answer to another run's turn is a breach.
		{name: "a line after a stop is for a new run", how: "answers the interrupt", wantErr: "breaches of the protocol", script: `
			> hello
			> /stop
			> again
			too late: gated discards it
			→ start, turn 2, without a session
			> /stop`},
		{name: "questions are answered by numbers", how: "asks", script: `
			> hi
			1. red
			Answer the question
			> 2
			chosen: green answered
			> again
			Answer the question
			> 0
			chosen:  expired`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			agent := fakeAgent(tt.how)
			if tt.how == "good" {
				agent.Session, agent.Dir = "old", t.TempDir()
			}
			term := atTerminal(t, t.Context(), agent)
			term.follow(tt.script)
			err := term.ends()
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("error %v, want %q", err, tt.wantErr)
			}
			for _, not := range []string{"\x1b", "| run:"} {
				if strings.Contains(term.text.String(), not) {
					t.Errorf("%q in\n%s", not, term.text.String())
				}
			}
		})
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
