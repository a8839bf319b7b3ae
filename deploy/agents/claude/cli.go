package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"arizuko/pkg/agentproto"
)

const (
	// maxLine is the longest line of the CLI, in bytes; the longest contain images that a tool has read.
	maxLine = 64 << 20
	// exitGrace is how long the CLI may take to exit after the end of its input. Then it gets SIGTERM,
	// and is killed after killGrace.
	exitGrace = 2 * time.Second
	killGrace = time.Second
	// mcpServer is the CLI's name for arizuko's tools.
	mcpServer = "arizuko"
)

// cli is one Claude Code process.
type cli struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	outbox chan []byte // to its stdin
	lines  chan line   // closed after its end
	stderr *lastLine
	exit   error       // how it ended; valid once lines is closed
	begun  bool        // it has begun a turn
	ended  bool        // its input has ended
	killer *time.Timer // set once its input has ended
}

// startCLI starts the CLI with the session to resume, "" for none. The end of ctx terminates it.
func startCLI(ctx context.Context, cfg *Config, session string, start agentproto.Start, stderr io.Writer) (*cli, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &cli{
		cancel: cancel, outbox: make(chan []byte, 256), lines: make(chan line),
		stderr: &lastLine{out: stderr, redact: cfg.redact},
	}
	mcpPath, mcpFile, err := mcpConfig(start.MCP)
	if err != nil {
		cancel()
		return nil, err
	}
	c.cmd = exec.CommandContext(ctx, cfg.Command, cfg.cliArgs(session, mcpPath, start.System)...)
	c.cmd.Env = cfg.cliEnviron()
	c.cmd.ExtraFiles = mcpFile
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = killGrace
	c.cmd.Stderr = c.stderr
	stdout, pipe := io.Pipe()
	c.cmd.Stdout = pipe
	stdin, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	for _, f := range mcpFile {
		f.Close()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	go c.write(stdin)
	go func() {
		c.exit = c.cmd.Wait()
		_ = pipe.Close()
	}()
	go c.read(stdout)
	return c, nil
}

// mcpConfig is a pipe with the configuration of arizuko's tools, and its path for the CLI. The token is
// in no argument, file or variable that the agent's commands could read.
func mcpConfig(mcp *agentproto.MCP) (path string, files []*os.File, err error) {
	if mcp == nil {
		return "", nil, nil
	}
	content, err := json.Marshal(map[string]any{"mcpServers": map[string]any{mcpServer: map[string]any{
		"type": "http", "url": mcp.URL, "headers": map[string]string{"Authorization": "Bearer " + mcp.Token},
	}}})
	if err != nil {
		return "", nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	defer w.Close()
	const pipeSize = 64 << 10 // what can be written without a reader
	if len(content) > pipeSize {
		r.Close()
		return "", nil, fmt.Errorf("configuration of the tools has %d bytes, at most %d are possible", len(content), pipeSize)
	}
	if _, err := w.Write(content); err != nil {
		r.Close()
		return "", nil, err
	}
	return "/dev/fd/3", []*os.File{r}, nil
}

// send queues a line for the CLI's stdin.
func (c *cli) send(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if !c.ended {
		c.outbox <- append(data, '\n')
	}
	return nil
}

// write writes the outbox to stdin. If the CLI has ended, the rest is dropped.
func (c *cli) write(stdin io.WriteCloser) {
	defer stdin.Close()
	for data := range c.outbox {
		_, _ = stdin.Write(data) // the end of its output shows that it has ended
	}
}

func (c *cli) read(stdout io.Reader) {
	defer close(c.lines)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		data := bytes.TrimSpace(lines.Bytes())
		if len(data) == 0 {
			continue
		}
		c.lines <- readLine(data)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(c.stderr, "output of Claude Code:", err)
		c.cancel()
		_, _ = io.Copy(io.Discard, stdout)
	}
}

// finish ends the CLI's input and, after exitGrace, the CLI.
func (c *cli) finish() {
	if !c.ended {
		c.ended = true
		close(c.outbox)
		c.killer = time.AfterFunc(exitGrace, c.cancel)
	}
}

// close waits until the CLI has ended, and kills the processes that it has left behind.
func (c *cli) close() {
	c.finish()
	for range c.lines { // further output is not wanted
	}
	c.killer.Stop()
	c.cancel()
	killLeftovers()
}

// ending describes how the CLI has ended, with its last line on stderr.
func (c *cli) ending() string {
	how := "unexpected exit"
	if c.exit != nil {
		how = c.exit.Error()
	}
	if last := c.stderr.String(); last != "" {
		return how + ": " + last
	}
	return how
}

// lastLine is a writer that redacts and passes on each line, and keeps the last one.
type lastLine struct {
	out    io.Writer
	redact func(string) string

	mu   sync.Mutex
	rest []byte // the incomplete last line
	last string
}

// maxRest is the length at which an unterminated line is broken, in bytes.
const maxRest = 64 << 10

func (l *lastLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		text, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found && len(text) < maxRest {
			return len(b), nil
		}
		l.line(string(text))
		l.rest = rest
	}
}

func (l *lastLine) line(text string) {
	if text = strings.TrimSpace(l.redact(text)); text != "" {
		l.last = text
		fmt.Fprintln(l.out, text)
	}
}

// String is the last line that is not blank, even if it is incomplete.
func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line(string(l.rest))
	l.rest = nil
	return l.last
}
