package agentproto

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

var (
	// ErrInterrupted is the cause of a turn's end when a user has sent /stop: what the agent
	// says about the turn from then on is discarded.
	ErrInterrupted = errors.New("interrupted by a user")
	// ErrTerminated is the cause of a turn's end when the context of [Serve] has ended, and
	// what Serve then returns.
	ErrTerminated = errors.New("terminated")
)

// Agent is what an agent written in Go is made of; [Serve] does the rest. Its functions are
// never called at the same time.
type Agent struct {
	// Answer answers a turn. The context ends, with the cause [ErrInterrupted] or
	// [ErrTerminated], when the answer is no longer wanted; Answer should then return soon,
	// since the next turn waits for it. With an error the turn has failed, and the run ends
	// unless there is a text: see [Failure].
	Answer func(ctx context.Context, t *Turn) (Reply, error)
	// Idle, if there is one, is called after Answer when no turn waits, for what happens
	// between turns. It has to return when its context ends. An error ends the run.
	Idle func(ctx context.Context) error
	// Log gets a line for each input that is ignored since its type is not known; nil for none.
	Log io.Writer
}

// Turn is one turn.
type Turn struct {
	ID     string
	Prompt string
	// Session is the agent's name of the conversation, "" for a new one.
	Session string
	// Start is the line that began the run: where the agent is, and its tools. Its TurnID,
	// Prompt and SessionID are those of the run's first turn.
	Start Start

	server *server
	state  state
}

// Reply is what the agent says.
type Reply struct {
	// Text is markdown, "" for silence. What is above [MaxResult] is cut off.
	Text string
	// Session is the name of the conversation from now on, "" to keep it.
	Session string
}

// Failure is an error that says what it means for the turn and its session. Other errors
// count as transient.
type Failure struct {
	Kind       Kind          // "" is session
	Text       string        // for operators
	RetryAfter time.Duration // with kind transient; 0 if nothing is known
}

func (f *Failure) Error() string { return f.Text }

// state is what may still be said about a turn.
type state int

const (
	open     state = iota
	answered       // further messages
	dropped        // nothing
)

// Send sends a message at once: before the answer as a part of it, and after it as one more
// message of the turn. It returns [ErrInterrupted] if the turn was interrupted, or the
// error of the output.
func (t *Turn) Send(r Reply) error {
	frame := r.frame(t.ID)
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	if t.state == open {
		frame.Final = new(bool)
	}
	return t.write(frame)
}

// write writes a frame of the turn. The caller holds the lock.
func (t *Turn) write(f Frame) error {
	if t.state == dropped {
		return ErrInterrupted
	}
	if f.NewSessionID != "" {
		t.server.session = f.NewSessionID
	}
	return WriteFrame(t.server.out, f)
}

// end writes the turn's last frame.
func (t *Turn) end(f Frame) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	err := t.write(f)
	if t.state == open {
		t.state = answered
	}
	return err
}

func (t *Turn) drop() {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.state = dropped
}

func (r Reply) frame(turnID string) Frame {
	return Frame{Status: StatusOK, TurnID: turnID, NewSessionID: r.Session, Result: Cut(r.Text, MaxResult)}
}

// fail makes the frame that of a failure.
func (f *Frame) fail(err error) {
	failure := &Failure{Kind: KindTransient, Text: err.Error()}
	_ = errors.As(err, &failure)
	f.Status, f.Kind, f.Error = StatusError, failure.Kind, Truncate(failure.Text, MaxError)
	if f.Kind == KindTransient {
		f.RetryAfter = min(max(failure.RetryAfter, 0), MaxRetryAfter).Seconds()
	}
}

// server is one run.
type server struct {
	agent   Agent
	start   Start
	waiting []*Turn // oldest first
	job     *job    // nil while neither Answer nor Idle runs
	idled   bool    // Idle has returned since the last turn

	mu      sync.Mutex // of the following, and of the states of turns
	out     io.Writer
	session string
}

// job is a call of Answer or Idle under way.
type job struct {
	turn *Turn // nil for Idle
	stop context.CancelCauseFunc
	done chan outcome
}

type outcome struct {
	reply Reply
	err   error
}

// Serve is the run of an agent: it reads lines from in, mostly standard input, has turns
// answered one after another, and writes their frames to out. It reads on while a turn is
// answered, so that a user's /stop interrupts it and drops the turns that wait.
//
// It returns nil at the end of in, once all turns are answered; the error of a turn that
// failed, for gated ends a run then, and gives other turns to the next one; [ErrTerminated]
// if ctx ends; and the error of in, which may be an invalid line, after the turns before it.
// The read of in that is under way when Serve returns goes on.
func Serve(ctx context.Context, in io.Reader, out io.Writer, a Agent) error {
	s := &server{agent: a, out: out}
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	inputs, readErr := s.read(reading, in)
	for {
		s.next(ctx, inputs != nil)
		if inputs == nil && s.job == nil {
			return <-readErr
		}
		var done chan outcome
		if s.job != nil {
			done = s.job.done
		}
		select {
		case input, more := <-inputs:
			if !more {
				inputs = nil
			}
			s.receive(input, more)
		case o := <-done:
			if err := s.finish(ctx, o); err != nil {
				return err
			}
		case <-ctx.Done():
			return s.terminate()
		}
	}
}

// read reads lines until in ends, a line is invalid, or the run has ended. The error, nil at the end of
// in, can be received once inputs is closed.
func (s *server) read(ctx context.Context, in io.Reader) (<-chan Input, <-chan error) {
	inputs, failed := make(chan Input), make(chan error, 1)
	go func() {
		defer close(inputs)
		lines := bufio.NewReader(in)
		for {
			line, err := lines.ReadBytes('\n')
			if len(bytes.TrimSpace(line)) > 0 {
				input, err := ReadInput(line)
				switch {
				case errors.Is(err, ErrUnknownType):
					s.log(err)
				case err != nil:
					failed <- err
					return
				default:
					select {
					case inputs <- input:
					case <-ctx.Done():
						failed <- ErrTerminated
						return
					}
				}
			}
			if err != nil {
				if err == io.EOF {
					err = nil
				}
				failed <- err
				return
			}
		}
	}()
	return inputs, failed
}

func (s *server) log(err error) {
	if s.agent.Log != nil {
		fmt.Fprintln(s.agent.Log, "ignored:", err)
	}
}

// next begins the oldest turn or, if there may be further input, Idle.
func (s *server) next(ctx context.Context, more bool) {
	switch {
	case s.job != nil:
	case len(s.waiting) > 0:
		t := s.waiting[0]
		s.waiting, s.idled = s.waiting[1:], false
		s.mu.Lock()
		t.Session = s.session
		s.mu.Unlock()
		s.begin(ctx, t, func(ctx context.Context) outcome {
			reply, err := s.agent.Answer(ctx, t)
			return outcome{reply, err}
		})
	case more && s.agent.Idle != nil && !s.idled:
		s.idled = true
		s.begin(ctx, nil, func(ctx context.Context) outcome { return outcome{err: s.agent.Idle(ctx)} })
	}
}

func (s *server) begin(ctx context.Context, t *Turn, call func(context.Context) outcome) {
	// The end of the run ends it after its frame was written, in terminate.
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	j := &job{turn: t, stop: stop, done: make(chan outcome, 1)}
	s.job = j
	go func() { j.done <- call(ctx) }()
}

// receive handles an input, or the end of all.
func (s *server) receive(input Input, more bool) {
	switch input := input.(type) {
	case Start:
		s.start = input
		s.mu.Lock()
		s.session = input.SessionID
		s.mu.Unlock()
		s.add(input.TurnID, input.Prompt)
	case Message:
		s.add(input.TurnID, input.Prompt)
	case Interrupt:
		s.waiting = nil
		if s.job != nil && s.job.turn != nil {
			s.job.turn.drop()
			s.job.stop(ErrInterrupted)
		}
	}
	if s.job != nil && s.job.turn == nil && (len(s.waiting) > 0 || !more) {
		s.job.stop(context.Canceled)
	}
}

func (s *server) add(id, prompt string) {
	s.waiting = append(s.waiting, &Turn{ID: id, Prompt: prompt, Start: s.start, server: s})
}

// finish ends the job with what it has returned.
func (s *server) finish(ctx context.Context, o outcome) error {
	t := s.job.turn
	if o.err != nil && ctx.Err() != nil {
		s.job.done <- o
		return s.terminate()
	}
	s.job.stop(nil)
	s.job = nil
	if t == nil {
		return o.err
	}
	f := o.reply.frame(t.ID)
	var failed error
	if o.err != nil {
		f.fail(o.err)
		if f.Result == "" {
			failed = o.err
		}
	}
	err := t.end(f)
	if errors.Is(err, ErrInterrupted) {
		return nil
	}
	return errors.Join(failed, err)
}

// terminate reports the turn at work as failed: the machine or an operator ended the run, which says nothing
// against its session. Gated, where it did, ignores the frame.
func (s *server) terminate() error {
	if s.job == nil {
		return ErrTerminated
	}
	var err error
	if t := s.job.turn; t != nil {
		f := Frame{TurnID: t.ID}
		f.fail(errors.New("the agent was terminated during a turn"))
		if err = t.end(f); errors.Is(err, ErrInterrupted) {
			err = nil
		}
		t.drop()
	}
	s.job.stop(ErrTerminated)
	<-s.job.done
	return errors.Join(ErrTerminated, err)
}
