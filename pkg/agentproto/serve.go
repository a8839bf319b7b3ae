package agentproto

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
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

// Turn is one turn.
type Turn struct {
	ID     string
	Prompt string // inert, whichever gated wrote it: see [Inert]
	// Session is the agent's name of the conversation, "" for a new one.
	Session string
	// Start is the line that began the run: where the agent is, and its tools. Its TurnID,
	// Prompt and SessionID are those of the run's first turn.
	Start Start

	server *server
	state  state
	fold   bool       // it may be folded into another turn
	newer  chan *Turn // turns that may be folded into this one
	folded []string   // ids of turns that were
	saidAt time.Time  // of the last event, or of the first sign
}

// maxNewer is how many turns wait to be received from Turn.Newer. Further ones are answered on their own.
const maxNewer = 64

// Newer gives, while Answer runs, the turns that came meanwhile and may be answered together with this one. What is
// done with one is up to Answer: [Turn.Fold] makes it a part of this turn. Otherwise it is answered after it, as a turn
// of its own. If folding was not announced, nothing comes.
func (t *Turn) Newer() <-chan *Turn { return t.newer }

// AnnounceFold says that Answer looks at [Turn.Newer] from now on, as Agent.Folds does for the whole run. It may be
// called more than once.
func (t *Turn) AnnounceFold() error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.folds {
		return nil
	}
	s.folds = true
	return WriteEvent(s.out, Event{Features: &Features{Fold: true}})
}

// Offer says which models the agent has, as in [Models]. It may be called more than once.
func (t *Turn) Offer(m Models) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	return WriteEvent(t.server.out, Event{Models: &m}.bounded())
}

// Fold makes a turn that was received from Newer a part of this one: the answer is for both. It returns
// [ErrInterrupted] if the turn was interrupted, or the error of the output. To fold a turn twice does nothing.
func (t *Turn) Fold(newer *Turn) error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, newer)
	switch {
	case t.state == dropped || newer.state == dropped:
		return ErrInterrupted
	case i < 0 || t.state != open:
		return nil
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	newer.state = answered
	t.folded = append(t.folded, newer.ID)
	return WriteEvent(s.out, Event{TurnID: newer.ID, Status: StatusRunning})
}

// Reply is the agent's answer.
type Reply struct {
	// Text is markdown, "" for silence. Beyond [MaxResult] it is cut off.
	Text string
	// Session is the name of the conversation from now on, "" to keep it.
	Session string
}

// Failure is an error with its effect on the turn and its session. Other errors
// count as transient.
type Failure struct {
	Kind       Kind          // "" is session
	Text       string        // for operators
	RetryAfter time.Duration // with kind transient; 0 if nothing is known
}

func (f *Failure) Error() string { return f.Text }

// state says which reports about a turn are still allowed.
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
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	frame := t.frame(r)
	if t.state == open {
		frame.Final = new(bool)
	}
	return t.write(frame)
}

// Emit reports the agent's progress, before its answer. It returns [ErrInterrupted] if the turn was interrupted, or the
// error of the output. Gated keeps at most four states a second, so there is no need to emit fewer. Texts that are too
// long for an event are cut, so that no tool or model can fail a turn by the length of its name.
func (t *Turn) Emit(e Event) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	return t.emit(e)
}

func (t *Turn) emit(e Event) error {
	if t.state == dropped {
		return ErrInterrupted
	}
	e.TurnID, t.saidAt = t.ID, time.Now()
	return WriteEvent(t.server.out, e.bounded())
}

// signInterval is the smallest time between an event and one that says nothing but that the agent works.
const signInterval = 20 * time.Second

// Alive is called when the model gives a sign that users do not see, such as a thought. It emits [StatusRunning] if
// there was no event for a while: after a minute without one, users read that the agent gives no sign.
func (t *Turn) Alive() error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	if t.saidAt.IsZero() {
		t.saidAt = time.Now()
	}
	if time.Since(t.saidAt) < signInterval {
		return nil
	}
	return t.emit(Event{Status: StatusRunning})
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

// end writes the turn's last frame. A failure without an answer is that of the turn alone: those that were folded into
// it are asked again.
func (t *Turn) end(r Reply, failure error) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	f := t.frame(r)
	if failure != nil {
		f.fail(failure)
		if f.Result == "" {
			f.TurnID, f.TurnIDs = t.ID, nil
		}
	}
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

// frame is a frame for the turn and those that were folded into it. The caller holds the lock.
func (t *Turn) frame(r Reply) Frame {
	f := Frame{Status: StatusOK, NewSessionID: r.Session, Result: Cut(r.Text, MaxResult)}
	if len(t.folded) > 0 {
		f.TurnIDs = append([]string{t.ID}, t.folded...)
	} else {
		f.TurnID = t.ID
	}
	return f
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

// offer offers the running turn a newer one. The caller holds the lock.
func (t *Turn) offer(newer *Turn) {
	if !t.server.folds || !newer.fold {
		return
	}
	select {
	case t.newer <- newer:
	default:
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
		s.add(input.TurnID, input.Prompt, false)
	case Message:
		s.add(input.TurnID, input.Prompt, input.Fold)
	case Answer:
		s.answered(input)
	case Interrupt:
		s.dropWaiting()
		if s.job != nil && s.job.turn != nil {
			s.job.turn.drop()
			s.job.stop(ErrInterrupted)
		}
	}
	if !more {
		s.endInput()
	}
	if s.job != nil && s.job.turn == nil && (s.waits() || !more) {
		s.job.stop(context.Canceled)
	}
}

func (s *server) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

func (s *server) dropWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.waiting {
		t.state = dropped
	}
	s.waiting = nil
}

// add makes a turn wait, and offers it to the one that is being answered.
func (s *server) add(id, prompt string, fold bool) {
	t := &Turn{ID: id, Prompt: Inert(prompt), Start: s.start, server: s, fold: fold, newer: make(chan *Turn, maxNewer)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, t)
	if s.job != nil && s.job.turn != nil {
		s.job.turn.offer(t)
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
