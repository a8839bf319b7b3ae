package subprocess

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// MaxLine is the longest line of a program, in bytes; the longest contain files that its tools have read, images too.
const MaxLine = 64 << 20

// sendTimeout is how long a program may leave its input unread while so many lines wait for it that there is no room
// for another. Then it gets SIGTERM: a caller who waited longer could not stop its turn.
const sendTimeout = 3 * time.Second

// killGrace is how long a program may take to exit after SIGTERM. Then it is killed.
const killGrace = time.Second

// Program describes the program of a Process.
type Program struct {
	Args      []string // its path or name, and its arguments
	Env       []string
	Files     []*os.File // that it has from descriptor 3 on; Start closes them here
	Stderr    *LastLine
	ExitGrace time.Duration // how long it may take to exit after the end of its input. Then it gets SIGTERM
}

// Process is a running program that reads lines of JSON on its stdin and writes lines, which are read as L. Its methods
// are called by one goroutine.
type Process[L any] struct {
	Lines <-chan L // closed after its end

	program Program
	cmd     *exec.Cmd
	cancel  context.CancelFunc
	outbox  chan []byte // to its stdin
	exit    error       // valid once Lines is closed
	ended   bool        // its input has ended
	killer  *time.Timer // set once its input has ended

	mu     sync.Mutex
	hungUp string // the pipe that it closed or left full, if it was terminated for that
}

// Start starts a program. read reads a line that is not blank, and reports false for one to leave out. The end of ctx
// terminates the program.
func Start[L any](ctx context.Context, program Program, read func(line []byte) (L, bool)) (*Process[L], error) {
	ctx, cancel := context.WithCancel(ctx)
	lines := make(chan L)
	p := &Process[L]{Lines: lines, program: program, cancel: cancel, outbox: make(chan []byte, 256)}
	p.cmd = exec.CommandContext(ctx, program.Args[0], program.Args[1:]...)
	p.cmd.Env, p.cmd.ExtraFiles, p.cmd.Stderr = program.Env, program.Files, program.Stderr
	p.cmd.Cancel = p.terminate
	p.cmd.WaitDelay = killGrace
	stdout, pipe := io.Pipe()
	p.cmd.Stdout = Output{pipe, func() { p.hangUp("stdout") }}
	stdin, err := p.cmd.StdinPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	for _, f := range program.Files {
		f.Close()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	go p.write(stdin)
	go func() {
		p.exit = p.cmd.Wait()
		_ = pipe.Close()
	}()
	go p.read(stdout, lines, read)
	return p, nil
}

// hangUp lets a program exit that has closed one of its pipes: no caller can talk to it any more. One that stays gets
// SIGTERM.
func (p *Process[L]) hangUp(pipe string) {
	time.AfterFunc(p.program.ExitGrace, func() {
		if p.cmd.Process.Signal(syscall.Signal(0)) != nil {
			return // it has ended
		}
		p.giveUp("it closed its " + pipe + " and went on running")
	})
}

// giveUp terminates a program that no caller can talk to any more.
func (p *Process[L]) giveUp(why string) {
	p.mu.Lock()
	p.hungUp = why
	p.mu.Unlock()
	p.cancel()
}

func (p *Process[L]) terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// Send queues a line with a value in JSON. After Finish it does nothing.
func (p *Process[L]) Send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if p.ended {
		return nil
	}
	select {
	case p.outbox <- append(line, '\n'):
		return nil
	default:
	}
	select {
	case p.outbox <- append(line, '\n'):
	case <-time.After(sendTimeout):
		p.giveUp("it did not read its stdin")
	}
	return nil
}

// write writes the outbox to stdin. If the program has closed it, the rest is dropped.
func (p *Process[L]) write(stdin io.WriteCloser) {
	defer stdin.Close()
	lost := false
	for line := range p.outbox {
		if _, err := stdin.Write(line); err != nil && !lost {
			lost = true
			p.hangUp("stdin")
		}
	}
}

func (p *Process[L]) read(stdout io.Reader, to chan<- L, read func([]byte) (L, bool)) {
	defer close(to)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, MaxLine)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if l, ok := read(line); ok {
			to <- l
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(p.program.Stderr, "output of the program:", err)
		p.cancel()
		_, _ = io.Copy(io.Discard, stdout)
	}
}

// Terminate terminates the program.
func (p *Process[L]) Terminate() { p.cancel() }

// Finish ends the program's input and, after its ExitGrace, the program.
func (p *Process[L]) Finish() {
	if !p.ended {
		p.ended = true
		close(p.outbox)
		p.killer = time.AfterFunc(p.program.ExitGrace, p.cancel)
	}
}

// Finished reports whether Finish was called.
func (p *Process[L]) Finished() bool { return p.ended }

// Close waits until the program has ended, and kills the processes that it has left behind.
func (p *Process[L]) Close() {
	p.Finish()
	for range p.Lines { // further output is not wanted
	}
	p.killer.Stop()
	p.cancel()
	KillLeftovers()
}

// Exit is how the program has ended, once Lines is closed.
func (p *Process[L]) Exit() error { return p.exit }

// Ending describes how the program has ended, with its last line on stderr.
func (p *Process[L]) Ending() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	how := p.program.Stderr.Ending(p.exit)
	if p.hungUp != "" {
		how = p.hungUp + ": " + how
	}
	return how
}
