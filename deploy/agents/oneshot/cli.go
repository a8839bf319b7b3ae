package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"arizuko/deploy/agents/internal/subprocess"
	"arizuko/pkg/agentproto"
)

const (
	// exitGrace is how long the command may run on after it has closed its output, which is all of the answer then.
	exitGrace = 3 * time.Second
	// killGrace is how long the command may take to end after SIGTERM.
	killGrace = time.Second
	// maxOutput is the longest output, in bytes.
	maxOutput = 16 << 20
	// maxStderr is how much of the end of stderr is kept to explain a failure, in bytes.
	maxStderr = 16 << 10
)

var errHungUp = fmt.Errorf("it closed its output and ran on for %s: it was terminated", exitGrace)

// cli is the command.
type cli struct {
	program string
	args    []string
	log     io.Writer
}

// name is the name of the command in messages.
func (c *cli) name() string { return filepath.Base(c.program) }

// answer runs the command for a turn. The end of ctx terminates it.
func (c *cli) answer(ctx context.Context, t *agentproto.Turn) (agentproto.Reply, error) {
	prompt := t.Prompt
	if t.Start.System != "" {
		prompt = agentproto.Inert(t.Start.System) + "\n" + prompt
	}
	var output output
	stderr := &tail{out: c.log}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var hungUp atomic.Bool
	cmd := exec.CommandContext(ctx, c.program, c.args...)
	cmd.Stdin = strings.NewReader(prompt)
	cmd.Stdout, cmd.Stderr = subprocess.Output{Writer: &output, Ended: func() {
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
	text := strings.TrimSpace(string(output))
	switch {
	case errors.Is(err, exec.ErrWaitDelay): // it has ended, but a child of it has not
		err = nil
	case hungUp.Load() && text != "":
		fmt.Fprintf(c.log, "%s: %v\n", c.program, errHungUp)
		err = nil
	case hungUp.Load():
		err = errHungUp
	}
	if err != nil || text == "" {
		return agentproto.Reply{}, c.explain(err, string(stderr.last))
	}
	return agentproto.Reply{Text: text}, nil
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

// output is what the command has printed.
type output []byte

func (o *output) Write(b []byte) (int, error) {
	if len(*o)+len(b) > maxOutput {
		return 0, fmt.Errorf("an answer of more than %d bytes", maxOutput)
	}
	*o = append(*o, b...)
	return len(b), nil
}

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
