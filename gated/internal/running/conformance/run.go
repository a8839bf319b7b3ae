package conformance

import (
	"bufio"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/agentproto"
)

// run is one process of the agent with its protocol checker.
type run struct {
	proc    *runtime.Proc
	events  <-chan event // must be received until the exit
	checker protocolChecker
	left    time.Time // when its end was requested
	grace   time.Duration

	failGrace time.Duration // after a failure or an interrupt
}

// event is one thing that happened to a run: a line printed outside its frames, after "out: " or
// "err: ", or an event of the runtime. The exit comes last.
type event struct {
	printed string
	runtime.Event
}

func newRun(proc *runtime.Proc, log <-chan string) *run {
	events := make(chan event)
	go merge(proc.Events(), log, events)
	return &run{proc: proc, events: events}
}

// merge merges two streams into one and closes it after the exit.
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
			if !strings.HasPrefix(line, "run: ") { // the exit, which is also an event
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

// send writes a line to the agent. If the agent has stopped reading, its exit reports that.
func (r *run) send(in agentproto.Input) error {
	line, err := agentproto.Encode(in)
	if err != nil {
		return err
	}
	return r.sendLine(line)
}

func (r *run) sendLine(line []byte) error { return r.proc.Send(line) }

// finish closes the agent's input and lets it answer its open turns, without a limit.
func (r *run) finish() {
	r.checker.closed = true
	r.proc.CloseInput()
	if len(r.checker.open) == 0 {
		r.stop(EOFGrace)
	}
}

// stop closes the agent's input and, after grace, kills the agent.
func (r *run) stop(grace time.Duration) {
	if !r.left.IsZero() {
		return
	}
	r.checker.closed = true
	r.left, r.grace = time.Now(), grace
	go r.proc.Stop(grace)
}

// abandon stops an agent that was interrupted or has failed. A late exit is not a breach then: it may
// be working.
func (r *run) abandon() {
	r.checker.cancel()
	r.checker.closed = true
	go r.proc.Stop(r.failGrace)
}

// furtherLine is the line of a further turn. It allows the agent to take the turn in where gated would.
func (r *run) furtherLine(id, text string) agentproto.Message {
	line := messageLine(id, text)
	if line.Fold = r.checker.mayFold(); line.Fold {
		r.checker.offer(id)
	}
	return line
}

// answer answers a question of the agent with an option, by its number from 1; 0 is no answer in time. A question that
// gated would refuse is refused, and a breach.
func (r *run) answer(e *agentproto.Event, option int) (wrong []breach) {
	a := agentproto.Answer{TurnID: e.TurnID, AskID: e.Ask.ID, PayloadHash: e.Ask.PayloadHash,
		Reason: agentproto.AskExpired}
	if err := e.Ask.Check(); err != nil {
		a.Reason, a.Problem = agentproto.AskRefused, err.Error()
		wrong = append(wrong, breach{"question " + e.Ask.ID + " cannot be asked: " + err.Error(),
			"ask as docs/agent-protocol.md says; gated refuses it, which counts as no"})
	} else if option > 0 {
		a.Option, a.Reason, a.By = e.Ask.Options[option-1], agentproto.AskAnswered, "cli:user"
	}
	_ = r.send(a) // if it has exited, that is the next event
	return wrong
}

// frame records a frame.
func (r *run) frame(f agentproto.Frame) (turns []string, wrong []breach) {
	turns, wrong = r.checker.frame(f)
	if r.checker.closed && len(r.checker.open) == 0 {
		r.stop(EOFGrace)
	}
	return turns, wrong
}

// ended returns what was wrong with the agent's exit.
func (r *run) ended(exit runtime.Exit) (wrong []breach) {
	late := !r.left.IsZero() && time.Since(r.left) >= r.grace
	return r.checker.exit(exit, late)
}

// logPipe is a named pipe in place of a run's log file, so that what the agent prints is shown at
// once.
type logPipe struct {
	path string
	file *os.File
}

func newLogPipe(path string) (*logPipe, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // does not wait for a writer
	if err != nil {
		return nil, err
	}
	return &logPipe{path, file}, nil
}

func (l *logPipe) close() { _ = l.file.Close() }

// lines returns the log line by line, and must be received until it is closed. The writing end of
// the pipe must be open when it is called.
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
			if err != nil { // io.EOF, or a failed read
				_, _ = io.Copy(io.Discard, in)
				return
			}
		}
	}()
	return lines
}
