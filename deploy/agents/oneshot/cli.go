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
	"sync/atomic"
	"syscall"
	"time"

	"arizuko/deploy/agents/internal/failure"
	"arizuko/deploy/agents/internal/paragraphs"
	"arizuko/deploy/agents/internal/subprocess"
	"arizuko/pkg/agentproto"
)

const (
	// exitGrace is how long the command may run on after it has closed its output, which is all of the answer then.
	exitGrace = 3 * time.Second
	// killGrace is how long the command may take to end after SIGTERM.
	killGrace = time.Second
	// maxLine is the longest line of output, or the longest answer of a plain command, in bytes.
	maxLine = 16 << 20
	// maxStderr is how much of the end of stderr is kept to explain a failure, in bytes.
	maxStderr = 16 << 10
)

var errHungUp = fmt.Errorf("it closed its output and ran on for %s: it was terminated", exitGrace)

// cli is the command.
type cli struct {
	dialect
	program string
	extra   []string // further arguments, set by the operator
	model   string
	log     io.Writer
}

func newCLI(program string, extra []string, model string, log io.Writer) *cli {
	return &cli{dialect: dialectOf(program), program: program, extra: extra, model: model, log: log}
}

// outcome is the result of a turn.
type outcome struct {
	text    string
	session string              // of the conversation, "" for none
	failure *agentproto.Failure // nil if there is an answer
}

// answer answers a turn. The system text is before the first prompt of a session. A failure names no
// session: one that the turn continued is kept by its kind, and one that the turn began may not be stored.
func (c *cli) answer(ctx context.Context, t *agentproto.Turn) (agentproto.Reply, error) {
	if f := c.replaced(); f != nil {
		return agentproto.Reply{}, f
	}
	prompt := t.Prompt
	if t.Start.System != "" && (t.Session == "" || c.sessions == nil) {
		prompt = agentproto.Inert(t.Start.System) + "\n" + prompt
	}
	o := c.ask(ctx, t.Session, prompt)
	if o.failure != nil {
		return agentproto.Reply{}, o.failure
	}
	return agentproto.Reply{Text: o.text, Session: o.session}, nil
}

// ask runs a process for a prompt in a session, or in a new one. The end of ctx terminates the process.
func (c *cli) ask(ctx context.Context, session, prompt string) outcome {
	switch {
	case c.sessions == nil:
		return c.runOnce(ctx, "", prompt)
	case session != "" && !c.sessions.MatchString(session):
		return outcome{failure: new(failure.SessionLost("it is not one of " + c.name))}
	}
	return c.runOnce(ctx, session, prompt)
}

func (c *cli) runOnce(ctx context.Context, session, prompt string) outcome {
	parser := &parser{read: c.read}
	stderr := &tail{out: c.log}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var hungUp atomic.Bool
	cmd := exec.CommandContext(ctx, c.program, c.args(c.extra, c.model, session)...)
	cmd.Stdin = strings.NewReader(prompt)
	cmd.Stdout, cmd.Stderr = subprocess.Output{Writer: parser, Ended: func() {
		time.AfterFunc(exitGrace, func() {
			if cmd.Process.Signal(syscall.Signal(0)) == nil { // it runs on
				hungUp.Store(true)
				cancel()
			}
		})
	}}, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	err := cmd.Run()
	parser.end()
	o := outcome{text: parser.answer(), session: parser.session}
	switch {
	case errors.Is(err, exec.ErrWaitDelay): // it has ended, but a child of it has not
		err = nil
	case hungUp.Load() && o.text != "":
		fmt.Fprintf(c.log, "%s: %v\n", c.program, errHungUp)
		err = nil
	case hungUp.Load():
		err = errHungUp
	}
	if err != nil || o.text == "" || parser.failure != "" && parser.ended { // by an error after a tool call
		o.failure = c.explain(err, parser.failure, string(stderr.last))
	}
	return o
}

var terminalCodes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// errorLine is the last line of stderr that contains "error", or else the last line.
func errorLine(stderr string) (line string) {
	for l := range strings.Lines(terminalCodes.ReplaceAllString(stderr, "")) {
		l = strings.TrimSpace(l)
		isError := strings.Contains(strings.ToLower(l), "error")
		if l != "" && (isError || !strings.Contains(strings.ToLower(line), "error")) {
			line = l
		}
	}
	return line
}

// excerpt is the beginning of a text, on one line.
func excerpt(text string) string {
	const maxExcerpt = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxExcerpt {
		text = strings.ToValidUTF8(text[:maxExcerpt], "") + "…"
	}
	return text
}

// parser makes an answer from the command's output.
type parser struct {
	read    func(line []byte) event // nil: the output is the answer
	rest    []byte                  // the incomplete last line
	text    string                  // the last one
	before  []string                // earlier ones, as before tool calls
	session string
	failure string
	ended   bool // the last text has ended: the next one is another paragraph
}

func (p *parser) Write(b []byte) (int, error) {
	if len(p.rest)+len(b) > maxLine {
		return 0, fmt.Errorf("a line of more than %d bytes", maxLine)
	}
	p.rest = append(p.rest, b...)
	for p.read != nil {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			break
		}
		p.apply(p.read(line))
		p.rest = rest
	}
	return len(b), nil
}

// end parses the incomplete last line.
func (p *parser) end() {
	if p.read == nil {
		p.text = string(p.rest)
	} else {
		p.apply(p.read(p.rest))
	}
}

func (p *parser) apply(e event) {
	p.session = cmp.Or(e.session, p.session)
	p.failure = cmp.Or(e.failure, p.failure)
	p.ended = p.ended || e.ends
	if e.text == "" {
		return
	}
	if p.ended && p.text != "" {
		p.before = append(p.before, p.text)
		p.text = ""
	}
	p.text += e.text
	p.ended = false
}

// answer is all texts as paragraphs.
func (p *parser) answer() string { return paragraphs.Join(append(p.before, p.text)) }

// tail is a writer that keeps the end of the text it passes on.
type tail struct {
	out  io.Writer
	last []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.last = append(t.last, b...)
	t.last = t.last[max(0, len(t.last)-maxStderr):]
	return t.out.Write(b)
}
