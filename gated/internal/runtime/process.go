// Package runtime runs agent processes: it starts one, carries lines to its
// stdin and frames from its stdout, and ends it together with everything it
// started. What a turn is, or which run may be reused, is decided by its callers.
//
// An agent is its process group. The group ends when its leader does, so a run
// that has reported [Exit] has left nothing behind but processes that moved
// themselves into a group of their own.
package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/agentproto"
)

// Spec is what it takes to start an agent.
type Spec struct {
	RunID   int64
	Command string   // for sh -c
	Dir     string   // the group's folder, which must exist
	Env     []string // the complete environment, see Environ
	LogPath string   // its folder must exist
	// Redact hides secrets in what is logged; nil hides none.
	Redact func(string) string
}

// Event is one thing that happened to a run: exactly one field is set.
type Event struct {
	Frame     *agentproto.Frame
	Malformed *agentproto.Malformed
	Exit      *Exit // the last event
}

// Exit tells how a process ended.
type Exit struct {
	Code   int            // exit code; -1 when a signal ended it
	Signal syscall.Signal // 0 unless a signal ended it
	// Unsent is how many of the bytes given to Send never entered its stdin.
	Unsent int
	// StderrTail is the last 2 KiB it wrote to stderr, valid UTF-8.
	StderrTail string
}

// Reason says in a few words how the process ended.
func (e Exit) Reason() string {
	if e.Signal != 0 {
		return fmt.Sprintf("ended by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Proc is a running agent. Its methods may be called from any goroutine.
type Proc struct {
	cmd     *exec.Cmd
	started int64
	input   *input
	stdout  *output
	stderr  *output
	log     *runLog
	tail    tail // of stderr
	events  chan Event

	mu     sync.Mutex    // held while signalling and while reaping
	reaped chan struct{} // closed under mu: from then on the pid may be anyone's
}

// Start runs spec.Command. Ending ctx kills the process group without grace.
//
// Events must be received until the channel is closed: output nobody takes
// stalls the agent, which is the intended back pressure, and keeps a goroutine.
func Start(ctx context.Context, spec Spec) (*Proc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	log, err := openLog(spec.LogPath, spec.Redact)
	if err != nil {
		return nil, fmt.Errorf("run %d: %w", spec.RunID, err)
	}
	p := &Proc{
		cmd:    exec.Command("/bin/sh", "-c", spec.Command),
		log:    log,
		events: make(chan Event),
		reaped: make(chan struct{}),
	}
	p.cmd.Dir = spec.Dir
	// The marker also keeps Env from being nil, which would mean gated's own.
	p.cmd.Env = append([]string{runMarker(spec.RunID)}, spec.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.startWithPipes(); err != nil {
		return nil, errors.Join(fmt.Errorf("run %d: start agent: %w", spec.RunID, err), log.Close())
	}
	go p.supervise(context.AfterFunc(ctx, func() { p.signal(syscall.SIGKILL) }))
	return p, nil
}

// startWithPipes makes its pipes itself, since those of exec.Cmd lose output
// that is still unread when Wait returns.
func (p *Proc) startWithPipes() (err error) {
	var ours, theirs [3]*os.File
	defer func() {
		closeAll(theirs[:])
		if err != nil {
			closeAll(ours[:])
		}
	}()
	for fd := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		ours[fd], theirs[fd] = r, w
	}
	ours[0], theirs[0] = theirs[0], ours[0] // stdin flows the other way
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := p.cmd.Start(); err != nil {
		return err
	}
	// Read before anything reaps it: even if it is dead by now, its entry stands.
	if st, err := readStat(p.PID()); err == nil {
		p.started = st.started
	}
	p.input, p.stdout, p.stderr = newInput(ours[0]), newOutput(ours[1]), newOutput(ours[2])
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// PID is the id of the process and of its process group.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// PIDStart is when the process started, in clock ticks since boot. Together with
// PID it names the process for good: see Kill.
func (p *Proc) PIDStart() int64 { return p.started }

// Events carries the frames in the order they were written, then Exit, then is
// closed. All that was written before the exit comes before Exit.
func (p *Proc) Events() <-chan Event { return p.events }

// Send queues one line, newline included, for the agent's stdin. It never
// blocks. It returns ErrFull when 4 MiB wait already, and ErrClosed after
// CloseInput or once the agent no longer reads.
func (p *Proc) Send(line []byte) error { return p.input.send(line) }

// CloseInput ends the agent's stdin after what is queued.
func (p *Proc) CloseInput() { p.input.closeAfterQueue() }

// Stop ends the run: end of input at once, SIGTERM to the group after grace,
// SIGKILL after another grace. It returns when the process is gone, whether or
// not anyone receives Events, and may be called any number of times.
func (p *Proc) Stop(grace time.Duration) {
	p.CloseInput()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		timer := time.NewTimer(grace)
		select {
		case <-p.reaped:
			timer.Stop()
			return
		case <-timer.C:
			p.signal(sig)
		}
	}
	<-p.reaped
}

// signal reaches the whole group, or no one once the leader is reaped and its
// number may have been given to a stranger.
func (p *Proc) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.reaped:
	default:
		_ = syscall.Kill(-p.PID(), sig)
	}
}

// supervise lives as long as the run. forget detaches it from its context.
func (p *Proc) supervise(forget func() bool) {
	var streams sync.WaitGroup
	streams.Go(p.input.run)
	streams.Go(p.readFrames)
	streams.Go(p.readStderr)

	awaitExit(p.PID())
	p.reap()
	forget()
	p.input.abort()
	p.stdout.finish()
	p.stderr.finish()
	streams.Wait()

	exit := p.exit()
	p.log.line("run", []byte(exit.Reason()))
	_ = p.log.Close()
	p.events <- Event{Exit: &exit}
	close(p.events)
}

// awaitExit returns when the process is dead but not yet reaped.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// reap kills what is left of the group while the dead leader still keeps the
// group's number from being reused, and only then lets go of it.
func (p *Proc) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	_ = p.cmd.Wait() // the exit code is in ProcessState
	close(p.reaped)
}

func (p *Proc) exit() Exit {
	exit := Exit{Code: p.cmd.ProcessState.ExitCode(), Unsent: p.input.unsent(), StderrTail: p.tail.String()}
	if state := p.cmd.ProcessState; state != nil {
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			exit.Signal = status.Signal()
		}
	}
	return exit
}

func (p *Proc) readFrames() {
	defer p.stdout.close()
	scanner := agentproto.NewScanner(p.stdout, stdoutLog{p.log})
	for {
		frame, err := scanner.Next()
		var bad *agentproto.Malformed
		switch {
		case err == nil:
			p.events <- Event{Frame: &frame}
		case errors.As(err, &bad):
			p.events <- Event{Malformed: bad}
		default:
			// An agent without a stdout can answer nothing more: let it finish.
			p.CloseInput()
			return
		}
	}
}

func (p *Proc) readStderr() {
	defer p.stderr.close()
	in := bufio.NewReader(p.stderr)
	for {
		piece, err := in.ReadSlice('\n')
		p.log.line("err", piece)
		p.tail.add(piece)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// runMarker is the environment entry by which a process is known to be of a run.
func runMarker(runID int64) string { return "ARIZUKO_RUN=" + strconv.FormatInt(runID, 10) }
