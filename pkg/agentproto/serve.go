package agentproto

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

var (
	// ErrInterrupted is the cause of a turn's end when a user has sent /stop: what the agent
	// says about the turn from then on is discarded.
	ErrInterrupted = errors.New("interrupted by a user")
	// ErrTerminated is the cause of a turn's end when the context of [Serve] has ended, and
	// Serve's error then.
	ErrTerminated = errors.New("terminated")
)

// Agent holds the functions of an agent written in Go; [Serve] does the rest. Its functions are
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
	// Folds: Answer looks at [Turn.Newer], so that users' newer messages reach the turn under way. An agent that learns
	// later whether it can do that calls [Turn.AnnounceFold] instead.
	Folds bool
	// Log gets a line for each input that is ignored since its type is not known; nil for none.
	Log io.Writer
}

// server is one run.
type server struct {
	agent Agent
	start Start
	job   *job // nil while neither Answer nor Idle runs
	idled bool // Idle has returned since the last turn

	mu      sync.Mutex // of the following, and of the states of turns
	waiting []*Turn    // oldest first
	out     io.Writer
	session string
	folds   bool                   // the agent has announced it
	asked   map[askKey]chan Answer // questions that wait for their answers
	// inputEnded: no answer can come any more.
	inputEnded bool
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
	s := &server{agent: a, out: out, folds: a.Folds, asked: map[askKey]chan Answer{}}
	if a.Folds {
		if err := WriteEvent(out, Event{Features: &Features{Fold: true}}); err != nil {
			return err
		}
	}
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
	if s.job != nil {
		return
	}
	t := s.oldest()
	switch {
	case t != nil:
		s.idled = false
		s.begin(ctx, t, func(ctx context.Context) outcome {
			reply, err := s.agent.Answer(ctx, t)
			return outcome{reply, err}
		})
	case more && s.agent.Idle != nil && !s.idled:
		s.idled = true
		s.begin(ctx, nil, func(ctx context.Context) outcome { return outcome{err: s.agent.Idle(ctx)} })
	}
}

// oldest takes the oldest turn that waits, nil if none does, and offers it the others.
func (s *server) oldest() *Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return nil
	}
	t := s.waiting[0]
	s.waiting = s.waiting[1:]
	t.Session = s.session
	for _, newer := range s.waiting {
		t.offer(newer)
	}
	return t
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
	s.mu.Lock()
	defer s.mu.Unlock()
	var running *Turn
	if s.job != nil {
		running = s.job.turn
	}
	switch input := input.(type) {
	case Start:
		s.start, s.session = input, input.SessionID
		s.add(input.TurnID, input.Prompt, false, running)
	case Message:
		s.add(input.TurnID, input.Prompt, input.Fold, running)
	case Answer:
		s.answered(input)
	case Interrupt:
		for _, t := range s.waiting {
			t.state = dropped
		}
		s.waiting = nil
		if running != nil {
			running.state = dropped
			s.job.stop(ErrInterrupted)
		}
	}
	if !more {
		s.inputEnded = true
		for _, answers := range s.asked {
			close(answers)
		}
	}
	if s.job != nil && running == nil && (len(s.waiting) > 0 || !more) {
		s.job.stop(context.Canceled)
	}
}

// add makes a turn wait, and offers it to the running one. The caller holds the lock.
func (s *server) add(id, prompt string, fold bool, running *Turn) {
	t := &Turn{ID: id, Prompt: Inert(prompt), Start: s.start, server: s, fold: fold, newer: make(chan *Turn, maxNewer)}
	s.waiting = append(s.waiting, t)
	if running != nil {
		running.offer(t)
	}
}

// finish ends the job with its result.
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
	var failed error
	if o.err != nil && o.reply.Text == "" {
		failed = o.err
	}
	err := t.end(o.reply, o.err)
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
		err = t.end(Reply{}, errors.New("the agent was terminated during a turn"))
		if errors.Is(err, ErrInterrupted) {
			err = nil
		}
		t.drop()
	}
	s.job.stop(ErrTerminated)
	<-s.job.done
	return errors.Join(ErrTerminated, err)
}
