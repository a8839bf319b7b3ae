package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	// killGrace is how long the command may take to end when it is told to.
	killGrace = time.Second
	// maxLine bounds a line of the command's output, and an answer that is not in lines.
	maxLine = 16 << 20
	// maxStderr is how much of its stderr is kept, to say why it failed.
	maxStderr = 16 << 10
)

// cli is the command.
type cli struct {
	dialect
	program string
	extra   []string // arguments of the operator's
	model   string
	log     io.Writer
}

func newCLI(program string, extra []string, model string, log io.Writer) *cli {
	return &cli{dialect: dialectOf(program), program: program, extra: extra, model: model, log: log}
}

// outcome is what became of a turn.
type outcome struct {
	text    string
	session string // in which the conversation goes on, "" for none
	lost    bool   // the session to resume was not there
	failure string // why there is no answer, "" if there is one
}

// ask has a process answer a prompt in a session, or in a new one if that is gone. Ending ctx
// terminates it.
func (c *cli) ask(ctx context.Context, session, prompt string) outcome {
	if c.sessions == nil {
		return c.try(ctx, "", prompt)
	}
	if session != "" && !c.sessions.MatchString(session) { // another agent's
		o := c.try(ctx, "", prompt)
		o.lost = true
		return o
	}
	o := c.try(ctx, session, prompt)
	if session != "" && o.lost {
		o = c.try(ctx, "", prompt)
		o.lost = true
	}
	return o
}

func (c *cli) try(ctx context.Context, session, prompt string) outcome {
	reading := &reading{read: c.read}
	stderr := &tail{out: c.log}
	cmd := exec.CommandContext(ctx, c.program, c.args(c.extra, c.model, session)...)
	cmd.Stdin = strings.NewReader(c.escape(prompt))
	cmd.Stdout, cmd.Stderr = reading, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // it is done, and something that it started is not
		err = nil
	}
	reading.end()
	o := outcome{text: strings.TrimSpace(reading.text), session: reading.session}
	if err != nil || o.text == "" && reading.failure != "" {
		o.lost = c.lost != "" && strings.Contains(string(stderr.last), c.lost)
		o.failure = c.explain(err, reading.failure, string(stderr.last))
	}
	return o
}

// explain says why there is no answer: in the command's own words, where it has some.
func (c *cli) explain(err error, said, stderr string) string {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Sprintf("%s is not installed, or not in PATH", c.program)
	case said != "":
		return fmt.Sprintf("%s failed: %s", c.name, words(said))
	}
	how := "it did not say why"
	if err != nil {
		how = err.Error()
	}
	return fmt.Sprintf("%s failed: %s", c.name, cmp.Or(words(complaint(stderr)), how))
}

var steering = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// complaint is the line of stderr that says what is wrong: the last that speaks of an error, else
// the last.
func complaint(stderr string) (line string) {
	for l := range strings.Lines(steering.ReplaceAllString(stderr, "")) {
		l = strings.TrimSpace(l)
		isError := strings.Contains(strings.ToLower(l), "error")
		if l != "" && (isError || !strings.Contains(strings.ToLower(line), "error")) {
			line = l
		}
	}
	return line
}

// words are the beginning of text, on one line.
func words(text string) string {
	const longest = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

// reading makes an answer of the command's output.
type reading struct {
	read    func(line []byte) event // nil: the output is the answer
	rest    []byte                  // of a line that is not complete
	text    string
	session string
	failure string
	begun   bool // what was said so far was on the way to the answer
}

func (r *reading) Write(b []byte) (int, error) {
	if len(r.rest)+len(b) > maxLine {
		return 0, fmt.Errorf("more than %d bytes without an end", maxLine)
	}
	r.rest = append(r.rest, b...)
	for r.read != nil {
		line, rest, found := bytes.Cut(r.rest, []byte("\n"))
		if !found {
			break
		}
		r.take(r.read(line))
		r.rest = rest
	}
	return len(b), nil
}

// end takes what is left.
func (r *reading) end() {
	if r.read == nil {
		r.text = string(r.rest)
	} else {
		r.take(r.read(r.rest))
	}
}

func (r *reading) take(e event) {
	r.session = cmp.Or(e.session, r.session)
	r.failure = cmp.Or(e.failure, r.failure)
	r.begun = r.begun || e.begins
	if e.text != "" {
		if r.begun {
			r.text, r.begun = "", false
		}
		r.text += e.text
	}
}

// tail passes on what it is written, and keeps the end of it.
type tail struct {
	out  io.Writer
	last []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.last = append(t.last, b...)
	t.last = t.last[max(0, len(t.last)-maxStderr):]
	return t.out.Write(b)
}
