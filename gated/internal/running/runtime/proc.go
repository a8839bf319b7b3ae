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
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/agentproto"
)

// Event is one thing that happened to a run: exactly one of its pointers is set.
type Event struct {
	Frame     *agentproto.Frame
	Progress  *agentproto.Event
	Malformed *agentproto.Malformed
	Exit      *Exit // the last event
	// Reports is how many of the run's Reports come before it.
	Reports int
}

// Exit is how a process ended.
type Exit struct {
	Code   int            // exit code; -1 when a signal ended it
	Signal syscall.Signal // 0 unless a signal ended it
	// Unsent is how many of the bytes given to Send never entered its stdin.
	Unsent int
	// StderrTail is the last 2 KiB it wrote to stderr, valid UTF-8.
	StderrTail string
	// Mute is set if the agent had closed its stdout, did not exit, and was ended for that.
	Mute bool
	// Err is set if the runtime failed and not the agent; see ClassOf.
	Err error
}

// Reason describes in a few words how the process ended.
func (e Exit) Reason() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	how := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != 0 {
		how = fmt.Sprintf("ended by signal %d (%s)", int(e.Signal), e.Signal)
	}
	if e.Mute {
		return "it closed its stdout, which must stay open until it exits, and went on running: " + how
	}
	return how
}

// job is the process that a runtime starts for an agent.
type job struct {
	argv  []string
	env   []string
	files []*os.File // open in the process from descriptor 3 on
	// pinned kills the process with gated. It is started from a thread that lives as long
	// as the process: the kernel sends its parent-death signal when that thread ends.
	pinned bool
	// prepare is called when the process has started, before Start returns; nil is nothing. Its error ends the process.
	prepare func() error
	// terminate asks the agent to exit; nil: SIGTERM to the process group.
	terminate func()
	// cleanup is called after the process has exited, to end processes that may have
	// outlived it. It may set fields of the exit.
	cleanup func(*Exit)
	// relay is how long the agent's output may take to the pipe; 0 if it writes into the pipe itself.
	relay time.Duration
	// apart gives the process its stdin and stdout as descriptors after those of files, and /dev/null as 0 and 1: it
	// hands them on to the agent and closes its own. The agent could not close a file that it kept open.
	apart bool
}

// Proc is a running agent. Its methods may be called from any goroutine.
type Proc struct {
	job     job
	cmd     *exec.Cmd
	started int64
	label   string
	user    User
	input   *input
	stdout  *output
	stderr  *output
	log     *runLog
	tail    tail // of stderr
	framed  bool // it has said something
	events  chan Event
	reports chan *agentproto.Event
	// reported is how many reports were stored in reports.
	reported int

	outputGrace time.Duration // see Spec
	mute        atomic.Bool   // see Exit

	mu     sync.Mutex    // held while signalling and while reaping
	reaped chan struct{} // closed under mu: from then on the pid may be reused
}

// start starts a job. The end of ctx kills its process group without grace.
func start(ctx context.Context, spec Spec, j job) (*Proc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	log, err := openLog(spec)
	if err != nil {
		return nil, err
	}
	p := &Proc{
		job:     j,
		cmd:     exec.Command(j.argv[0], j.argv[1:]...),
		log:     log,
		events:  make(chan Event),
		reports: make(chan *agentproto.Event, maxReports),
		reaped:  make(chan struct{}),

		outputGrace: spec.OutputGrace,
	}
	p.cmd.Dir = spec.Dir
	// The marker also keeps the environment from being nil, which would mean gated's own.
	p.cmd.Env = append([]string{runMarker(spec.RunID)}, j.env...)
	p.cmd.ExtraFiles = j.files
	p.user = spec.User
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !spec.User.IsZero() {
		// Gated's terminal would take input from it.
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if j.pinned {
		p.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	// Descriptors that gated inherited are not for the agent. Kernels before 5.11 do
	// not have the call.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	started := make(chan error)
	go p.live(ctx, started)
	if err := <-started; err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return p, nil
}

// startWithPipes makes the pipes itself: those of exec.Cmd lose output that is
// unread when Wait returns.
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
		if p.user.IsZero() {
			continue
		}
		if err := w.Chown(p.user.UID, p.user.GID); err != nil { // it may open /dev/stderr
			return err
		}
	}
	ours[0], theirs[0] = theirs[0], ours[0] // stdin flows the other way
	p.cmd.Stderr = theirs[2]
	if p.job.apart {
		p.cmd.ExtraFiles = append(slices.Clone(p.job.files), theirs[0], theirs[1])
	} else {
		p.cmd.Stdin, p.cmd.Stdout = theirs[0], theirs[1]
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	// Read it before the process is reaped: even of a dead one the entry stands.
	p.started = processOf(p.PID()).started
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

// PIDStart is when the process started, in clock ticks since boot. With PID it
// identifies the process for ever: see Runtime.End.
func (p *Proc) PIDStart() int64 { return p.started }

// Label has further marks of the run by which it is found after a crash, "" for none.
func (p *Proc) Label() string { return p.label }

// Events returns the frames and events of the agent in the order they were written, then Exit, then is
// closed. Exit comes after all that was written before the exit, when nothing of
// the run is left.
//
// They must be received until the channel is closed: an agent whose output is not
// received stalls, which is the intended back pressure, and keeps a goroutine.
func (p *Proc) Events() <-chan Event { return p.events }

// maxReports is how many reports of progress wait for their receiver. Each has at most 1 MiB.
const maxReports = 16

// Reports returns the agent's reports of progress in the order they were written. They need not be received at once, so
// the receiver can handle several of them together. Once maxReports wait, the next one comes from Events. An event says
// how many of them come before it.
func (p *Proc) Reports() <-chan *agentproto.Event { return p.reports }

// report stores a report of progress in Reports, if there is room.
func (p *Proc) report(e *agentproto.Event) bool {
	if e == nil || !e.IsReport() {
		return false
	}
	select {
	case p.reports <- e:
		p.reported++
		return true
	default:
		return false
	}
}

// Send queues one line, newline included, for the agent's stdin. It never
// blocks. It returns ErrFull if 4 MiB are waiting, and ErrClosed after CloseInput
// or if the agent has stopped reading.
func (p *Proc) Send(line []byte) error { return p.input.send(line) }

// CloseInput closes the agent's stdin after the queued lines.
func (p *Proc) CloseInput() { p.input.closeAfterQueue() }

// Deaf is closed once the agent, or its exit, has closed its stdin and has not read all that was sent.
func (p *Proc) Deaf() <-chan struct{} { return p.input.deaf }

// Stop ends the run: it closes stdin at once, sends SIGTERM after grace, SIGKILL
// after another grace. It returns when the process has ended, whether or not
// Events is received, and may be called any number of times.
func (p *Proc) Stop(grace time.Duration) {
	p.CloseInput()
	p.escalate(grace, p.terminate, p.kill)
}

// escalate takes each step after another grace, until the process has ended.
func (p *Proc) escalate(grace time.Duration, steps ...func()) {
	for _, step := range steps {
		select {
		case <-p.reaped:
			return
		case <-time.After(grace):
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

// signal reaches the whole group, or no process once the leader is reaped and its
// pid may have been reused.
func (p *Proc) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.reaped:
	default:
		_ = syscall.Kill(-p.PID(), sig)
	}
}

// live starts the process, reports that, and returns after its end.
func (p *Proc) live(ctx context.Context, started chan<- error) {
	if p.job.pinned {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
	}
	if err := p.startWithPipes(); err != nil {
		started <- fmt.Errorf("start agent: %w", err)
		return
	}
	forget := context.AfterFunc(ctx, p.kill)
	if p.job.prepare != nil {
		if err := p.job.prepare(); err != nil {
			forget()
			p.kill()
			p.reap()
			closeAll([]*os.File{p.input.file, p.stdout.file, p.stderr.file})
			started <- err
			return
		}
	}
	started <- nil

	var streams sync.WaitGroup
	streams.Go(p.input.run)
	streams.Go(p.input.watch)
	var problems [2]error
	streams.Go(func() { problems[0] = p.guard(p.readFrames) })
	streams.Go(func() { problems[1] = p.guard(p.readStderr) })

	awaitExit(p.PID())
	p.reap()
	forget()
	p.input.abort()
	p.stdout.finish()
	p.stderr.finish()
	streams.Wait()
	p.end(errors.Join(problems[:]...))
}

// guard reads a stream of the agent. A panic ends the run and not the daemon.
func (p *Proc) guard(read func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic while reading the agent's output: %v\n%s", cause, debug.Stack())
			p.kill()
		}
	}()
	read()
	return nil
}

// end sends the exit event when nothing of the run is left.
func (p *Proc) end(problem error) {
	exit := p.exit()
	exit.Err = problem
	if p.job.cleanup != nil {
		p.job.cleanup(&exit)
	}
	if exit.Err == nil && !p.framed {
		exit.Err = startFailure(exit)
	}
	p.log.line("run", []byte(exit.Reason()))
	_ = p.log.Close()
	p.events <- Event{Exit: &exit, Reports: p.reported}
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

// reap kills the rest of the group while the dead leader still keeps the group's
// id from being reused, and only then reaps the leader.
func (p *Proc) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	_ = p.cmd.Wait() // the exit code is in ProcessState
	close(p.reaped)
}

func (p *Proc) exit() Exit {
	exit := Exit{Code: p.cmd.ProcessState.ExitCode(), Unsent: p.input.unsent(), StderrTail: p.tail.String(),
		Mute: p.mute.Load()}
	if state := p.cmd.ProcessState; state != nil {
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			exit.Signal = status.Signal()
		}
	}
	return exit
}

// readFrames reads the agent's stdout to its end. An agent that has closed it can answer no more: it is asked to exit,
// and ended if it does not.
func (p *Proc) readFrames() {
	p.scanFrames()
	p.CloseInput()
	if p.outputGrace == 0 {
		return
	}
	p.escalate(p.outputGrace, func() {
		p.mute.Store(true)
		p.terminate()
	}, p.kill)
}

func (p *Proc) scanFrames() {
	defer p.stdout.close()
	scanner := agentproto.NewScanner(p.stdout, stdoutLog{p.log})
	for {
		out, err := scanner.Next()
		var bad *agentproto.Malformed
		switch {
		case err == nil:
			p.framed = true
			if !p.report(out.Event) {
				p.events <- Event{Frame: out.Frame, Progress: out.Event, Reports: p.reported}
			}
		case errors.As(err, &bad):
			p.framed = true
			p.events <- Event{Malformed: bad, Reports: p.reported}
		default:
			return
		}
	}
}

// outputPoll is how often AwaitOutput looks.
const outputPoll = time.Millisecond

// AwaitOutput waits until all frames that the agent has written so far are received from
// Events. It returns the error of ctx.
func (p *Proc) AwaitOutput(ctx context.Context) error {
	relayed := time.Now().Add(p.job.relay)
	poll := time.NewTicker(outputPoll)
	defer poll.Stop()
	for time.Now().Before(relayed) || !p.stdout.used() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.reaped:
			return nil
		case <-poll.C:
		}
	}
	return nil
}

func (p *Proc) readStderr() {
	defer p.stderr.close()
	in := bufio.NewReader(p.stderr)
	for {
		piece, err := in.ReadSlice('\n')
		p.log.line("err", piece)
		_, _ = p.tail.Write(piece)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// runMarker is the environment entry that marks the processes of a run.
func runMarker(runID int64) string { return "ARIZUKO_RUN=" + strconv.FormatInt(runID, 10) }
