package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/agentproto"
)

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
	// Err is set when it was the runtime that failed, and not the agent; a
	// *SetupError where trying again is no use.
	Err error
}

// Reason says in a few words how the process ended.
func (e Exit) Reason() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	if e.Signal != 0 {
		return fmt.Sprintf("ended by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// job is an agent as its runtime has it started.
type job struct {
	argv  []string
	env   []string
	files []*os.File // open in the process from 3 on
	// pinned has the process started by a thread that lives as long as it does:
	// the kernel takes a thread's end for its parent's.
	pinned bool
	// terminate asks the agent to end; nil: SIGTERM to the process group.
	terminate func()
	// cleanup is called when the process is gone, to end what may have outlived
	// it. It may add to what is told of the exit.
	cleanup func(*Exit)
}

// Proc is a running agent. Its methods may be called from any goroutine.
type Proc struct {
	job     job
	cmd     *exec.Cmd
	started int64
	label   string
	input   *input
	stdout  *output
	stderr  *output
	log     *runLog
	tail    tail // of stderr
	events  chan Event

	mu     sync.Mutex    // held while signalling and while reaping
	reaped chan struct{} // closed under mu: from then on the pid may be anyone's
}

// start runs a job. Ending ctx kills its process group without grace.
func start(ctx context.Context, spec Spec, j job) (*Proc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	log, err := openLog(spec.LogPath, spec.Redact)
	if err != nil {
		return nil, err
	}
	p := &Proc{
		job:    j,
		cmd:    exec.Command(j.argv[0], j.argv[1:]...),
		log:    log,
		events: make(chan Event),
		reaped: make(chan struct{}),
	}
	p.cmd.Dir = spec.Dir
	// The marker also keeps the environment from being nil, which would mean gated's own.
	p.cmd.Env = append([]string{runMarker(spec.RunID)}, j.env...)
	p.cmd.ExtraFiles = j.files
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// What gated was left open by whoever started it is not the agent's. Kernels
	// before 5.11 do not know the call.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	started := make(chan error)
	go p.live(ctx, started)
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start agent: %w", err), log.Close())
	}
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

// Label is by what else the run can be found after a crash, "" if by nothing.
func (p *Proc) Label() string { return p.label }

// Events carries the frames in the order they were written, then Exit, then is
// closed. All that was written before the exit comes before Exit, and Exit comes
// when nothing of the run is left.
//
// They must be received until the channel is closed: output nobody takes stalls
// the agent, which is the intended back pressure, and keeps a goroutine.
func (p *Proc) Events() <-chan Event { return p.events }

// Send queues one line, newline included, for the agent's stdin. It never
// blocks. It returns ErrFull when 4 MiB wait already, and ErrClosed after
// CloseInput or once the agent no longer reads.
func (p *Proc) Send(line []byte) error { return p.input.send(line) }

// CloseInput ends the agent's stdin after what is queued.
func (p *Proc) CloseInput() { p.input.closeAfterQueue() }

// Stop ends the run: end of input at once, SIGTERM after grace, SIGKILL after
// another grace. It returns when the process is gone, whether or not anyone
// receives Events, and may be called any number of times.
func (p *Proc) Stop(grace time.Duration) {
	p.CloseInput()
	for _, step := range []func(){p.terminate, p.kill} {
		timer := time.NewTimer(grace)
		select {
		case <-p.reaped:
			timer.Stop()
			return
		case <-timer.C:
			step()
		}
	}
	<-p.reaped
}

func (p *Proc) terminate() {
	if p.job.terminate != nil {
		p.job.terminate()
	} else {
		p.signal(syscall.SIGTERM)
	}
}

func (p *Proc) kill() { p.signal(syscall.SIGKILL) }

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

// live starts the process, says so, and lasts as long as it.
func (p *Proc) live(ctx context.Context, started chan<- error) {
	if p.job.pinned {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
	}
	if err := p.startWithPipes(); err != nil {
		started <- err
		return
	}
	forget := context.AfterFunc(ctx, p.kill)
	started <- nil

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
	p.end()
}

// end tells of the exit once nothing is left.
func (p *Proc) end() {
	exit := p.exit()
	if p.job.cleanup != nil {
		p.job.cleanup(&exit)
	}
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
