package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/deploy/agents/internal/subprocess"
	"arizuko/pkg/agentproto"
)

const (
	shell = "/bin/sh"
	// maxQueued is how many lines may wait for an agent that does not read.
	maxQueued = 1000
	// outputGrace is how long the output stays open after the exit, for processes that still write to it.
	outputGrace = 2 * time.Second
)

// Errors of process.send.
var (
	errFull   = errors.New("agent does not read its input: queue is full")
	errClosed = errors.New("agent takes no more input")
)

// event is one thing that happened to a run: one field is set. The exit comes last.
type event struct {
	Printed   string // a line outside frames and events, after "out: " or "err: "
	Frame     *agentproto.Frame
	Progress  *agentproto.Event
	Malformed *agentproto.Malformed
	Exit      *exit
}

// exit is how a process ended.
type exit struct {
	code    int            // -1 when a signal ended it
	signal  syscall.Signal // 0 unless a signal ended it
	problem string         // the last line on its stderr
	mute    bool           // it closed its stdout, went on running, and was ended for that
	missing bool           // the shell could not start the program
}

// reason describes in a few words how the process ended.
func (e exit) reason() string {
	how := fmt.Sprintf("exit code %d", e.code)
	switch {
	case e.missing:
		return "the agent's program cannot be started: " + e.problem
	case e.signal != 0:
		how = fmt.Sprintf("ended by signal %d (%s)", int(e.signal), e.signal)
	}
	if e.mute {
		return "it closed its stdout, which must stay open until it exits, and went on running: " + how
	}
	return how
}

// process is a running agent.
type process struct {
	events chan event // must be received until it is closed, after the exit
	cmd    *exec.Cmd
	framed bool // the agent has written a frame or an event
	muted  atomic.Bool

	input  sync.Mutex  // of the following two
	lines  chan []byte // for its stdin
	closed bool        // lines is

	reaping sync.Mutex    // held while signalling and while reaping
	ended   chan struct{} // closed under reaping: from then on the pid may be reused
}

// startProcess starts a command line by the shell, in a process group of its own. The end of ctx kills the group.
func startProcess(ctx context.Context, command, dir string, env []string) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(shell, "-c", command), events: make(chan event), ended: make(chan struct{}),
		lines: make(chan []byte, maxQueued)}
	stdout, stdoutWriter := io.Pipe()
	stderr, stderrWriter := io.Pipe()
	p.cmd.Dir, p.cmd.Env, p.cmd.WaitDelay = dir, env, outputGrace
	p.cmd.Stdout = subprocess.Output{Writer: stdoutWriter, Ended: func() { go p.endMute() }}
	p.cmd.Stderr = stderrWriter
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := p.cmd.StdinPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	go p.write(stdin)
	var readers sync.WaitGroup
	var problem string
	readers.Go(func() { p.readFrames(stdout) })
	readers.Go(func() { problem = p.readStderr(stderr) })
	go func() {
		defer context.AfterFunc(ctx, p.kill)()
		p.wait()
		_, _ = stdoutWriter.Close(), stderrWriter.Close()
		readers.Wait()
		p.events <- event{Exit: p.exit(problem)}
		close(p.events)
	}()
	return p, nil
}

// send queues a line, newline included. It never blocks.
func (p *process) send(line []byte) error {
	p.input.Lock()
	defer p.input.Unlock()
	if p.closed {
		return errClosed
	}
	select {
	case p.lines <- line:
		return nil
	default:
		return errFull
	}
}

// closeInput closes the agent's stdin after the queued lines.
func (p *process) closeInput() {
	p.input.Lock()
	defer p.input.Unlock()
	if !p.closed {
		p.closed = true
		close(p.lines)
	}
}

// write writes the queued lines to stdin, until the agent has stopped reading.
func (p *process) write(stdin io.WriteCloser) {
	defer stdin.Close()
	for line := range p.lines {
		if _, err := stdin.Write(line); err != nil {
			p.closeInput()
			return
		}
	}
}

// stop closes stdin at once, sends SIGTERM after grace and SIGKILL after another grace. It returns when the process
// has ended, and may be called several times.
func (p *process) stop(grace time.Duration) {
	p.closeInput()
	p.escalate(grace, p.terminate)
}

// escalate calls terminate after grace, and kills the process after another one.
func (p *process) escalate(grace time.Duration, terminate func()) {
	for _, step := range []func(){terminate, p.kill} {
		timer := time.NewTimer(grace)
		select {
		case <-p.ended:
			timer.Stop()
			return
		case <-timer.C:
			step()
		}
	}
	<-p.ended
}

// endMute ends an agent that has closed its stdout and does not exit: it can answer no more.
func (p *process) endMute() {
	p.closeInput()
	p.escalate(EOFGrace, func() {
		p.muted.Store(true)
		p.terminate()
	})
}

func (p *process) terminate() { p.signal(syscall.SIGTERM) }

func (p *process) kill() { p.signal(syscall.SIGKILL) }

// signal reaches the whole group, or no process once the leader is reaped and its pid may have been reused.
func (p *process) signal(s syscall.Signal) {
	p.reaping.Lock()
	defer p.reaping.Unlock()
	select {
	case <-p.ended:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// wait waits for the exit. It kills the rest of the group while the dead leader keeps the group's id from being reused.
func (p *process) wait() {
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.closeInput()
	p.reaping.Lock()
	defer p.reaping.Unlock()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait() // the exit code is in ProcessState
	close(p.ended)
}

// exit describes the end. problem is the last line on stderr.
func (p *process) exit(problem string) *exit {
	e := &exit{code: p.cmd.ProcessState.ExitCode(), problem: problem, mute: p.muted.Load()}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = status.Signal()
	}
	const notExecutable, notFound = 126, 127 // a shell's exit codes
	byShell := strings.HasPrefix(problem, shell+": ") || strings.HasPrefix(problem, "/usr/bin/env: ")
	e.missing = !p.framed && byShell && (e.code == notExecutable || e.code == notFound)
	return e
}

func (p *process) readFrames(stdout io.Reader) {
	scanner := agentproto.NewScanner(stdout, printedLines{"out: ", p.events})
	for {
		out, err := scanner.Next()
		var bad *agentproto.Malformed
		switch {
		case err == nil:
			p.framed = true
			p.events <- event{Frame: out.Frame, Progress: out.Event}
		case errors.As(err, &bad):
			p.framed = true
			p.events <- event{Malformed: bad}
		default:
			return
		}
	}
}

// readStderr returns the last line that is not blank.
func (p *process) readStderr(stderr io.Reader) (last string) {
	log := printedLines{"err: ", p.events}
	in := bufio.NewReader(stderr)
	for {
		line, err := in.ReadSlice('\n')
		_, _ = log.Write(line) // never fails
		if text := bytes.TrimSpace(line); len(text) > 0 {
			last = strings.ToValidUTF8(string(text), "\ufffd")
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return last
		}
	}
}

// printedLines makes each Write, which is a line, an event. Blank lines are left out.
type printedLines struct {
	source string
	events chan<- event
}

func (l printedLines) Write(line []byte) (int, error) {
	if text := bytes.TrimRight(line, "\r\n"); len(text) > 0 {
		l.events <- event{Printed: l.source + string(text)}
	}
	return len(line), nil
}
