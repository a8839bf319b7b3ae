package conformance

import (
	"bufio"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/runtime"
	"arizuko/pkg/agentproto"
)

// run is one process of the agent and what it is held to.
type run struct {
	proc    *runtime.Proc
	events  <-chan event // until the exit, and to be received until then
	checker protocolChecker
	left    time.Time // when it was told to go
	grace   time.Duration
}

// event is one thing that happened to a run: a line that it printed outside its frames, behind
// "out: " or "err: ", or else what the runtime tells. The exit comes last.
type event struct {
	printed string
	runtime.Event
}

func newRun(proc *runtime.Proc, log <-chan string) *run {
	events := make(chan event)
	go merge(proc.Events(), log, events)
	return &run{proc: proc, events: events}
}

// merge makes one stream of two, and closes it behind the exit.
func merge(source <-chan runtime.Event, log <-chan string, events chan<- event) {
	defer close(events)
	var exit runtime.Event
	for exit.Exit == nil || log != nil {
		select {
		case line, open := <-log:
			if !open {
				log = nil
				continue
			}
			if !strings.HasPrefix(line, "run: ") { // the exit, which is told as well
				events <- event{printed: line}
			}
		case e := <-source:
			if e.Exit != nil {
				exit, source = e, nil
			} else {
				events <- event{Event: e}
			}
		}
	}
	events <- event{Event: exit}
}

// send writes a line to the agent. That it no longer reads is told by its end.
func (r *run) send(in agentproto.Input) error {
	line, err := agentproto.Encode(in)
	if err != nil {
		return err
	}
	return r.sendLine(line)
}

func (r *run) sendLine(line []byte) error { return r.proc.Send(line) }

// finish ends the agent's input and lets it answer what it has, however long that takes.
func (r *run) finish() {
	r.checker.closed = true
	r.proc.CloseInput()
	if len(r.checker.open) == 0 {
		r.stop(EOFGrace)
	}
}

// stop ends the agent's input and, after grace, the agent.
func (r *run) stop(grace time.Duration) {
	if !r.left.IsZero() {
		return
	}
	r.checker.closed = true
	r.left, r.grace = time.Now(), grace
	go r.proc.Stop(grace)
}

// abandon has an agent go that is interrupted or given up. That it does not go by itself is no
// breach: it may be at work.
func (r *run) abandon() {
	r.checker.cancel()
	r.checker.closed = true
	go r.proc.Stop(FailGrace)
}

// frame enters a frame into the ledger.
func (r *run) frame(f agentproto.Frame) (turn string, wrong []breach) {
	turn, wrong = r.checker.frame(f)
	if r.checker.closed && len(r.checker.open) == 0 {
		r.stop(EOFGrace)
	}
	return turn, wrong
}

// ended tells what was wrong with the agent's end.
func (r *run) ended(exit runtime.Exit) (wrong []breach) {
	late := !r.left.IsZero() && time.Since(r.left) >= r.grace
	return r.checker.exit(exit, late)
}

// logPipe is a named pipe in the place of a run's log file, so that what the agent prints is seen
// as it comes.
type logPipe struct {
	path string
	file *os.File
}

func newLogPipe(path string) (*logPipe, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // does not wait for who writes
	if err != nil {
		return nil, err
	}
	return &logPipe{path, file}, nil
}

func (l *logPipe) close() { _ = l.file.Close() }

// lines carries the lines until the log is closed, and has to be received until then. Once
// somebody has opened the other end it may be called.
func (l *logPipe) lines() <-chan string {
	lines := make(chan string)
	go func() {
		defer l.close()
		defer close(lines)
		in := bufio.NewReader(l.file)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				lines <- strings.TrimRight(line, "\n")
			}
			if err != nil { // io.EOF, or nothing more can be had
				_, _ = io.Copy(io.Discard, in)
				return
			}
		}
	}()
	return lines
}
