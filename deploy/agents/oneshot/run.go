package main

import (
	"context"
	"errors"
	"io"
	"math"

	"arizuko/pkg/agentproto"
)

// errStopped is returned for a run that was terminated by a signal.
var errStopped = errors.New("terminated")

// run is one run of the agent. At most one turn runs at a time.
type run struct {
	cli     *cli
	out     io.Writer
	system  string // before the first prompt of a session
	session string
	waiting []turn       // oldest first
	running *runningTurn // nil between turns
}

type turn struct{ id, prompt string }

// runningTurn is a turn with its process.
type runningTurn struct {
	turn
	stop    context.CancelFunc
	done    chan outcome
	dropped bool // by an interrupt; its answer is not wanted
}

func newRun(c *cli, out io.Writer) *run { return &run{cli: c, out: out} }

// serve answers turns until inputs is closed and all are answered, or until a turn fails: the rest is
// left to another run.
func (r *run) serve(ctx context.Context, inputs <-chan agentproto.Input) error {
	defer r.stopTurn()
	for inputs != nil || r.running != nil {
		var done chan outcome
		if r.running != nil {
			done = r.running.done
		}
		select {
		case in, open := <-inputs:
			if !open {
				inputs = nil
			}
			r.receive(in)
		case o := <-done:
			if err := r.answer(o); err != nil {
				return err
			}
		case <-ctx.Done():
			return r.terminated()
		}
		r.next(ctx)
	}
	return nil
}

// terminated reports the running turn as failed: unless gated ended the run, and ignores the frame, the
// machine or an operator did, which says nothing against the session.
func (r *run) terminated() error {
	if r.running == nil || r.running.dropped {
		return errStopped
	}
	stopped := &failure{kind: agentproto.KindTransient, text: "the agent was terminated during a turn"}
	return errors.Join(errStopped, r.fail(r.running.id, stopped))
}

func (r *run) receive(in agentproto.Input) {
	switch in := in.(type) {
	case agentproto.Start:
		r.session, r.system = in.SessionID, in.System
		r.waiting = append(r.waiting, turn{in.TurnID, in.Prompt})
	case agentproto.Message:
		r.waiting = append(r.waiting, turn{in.TurnID, in.Prompt})
	case agentproto.Interrupt:
		r.waiting = nil
		if r.running != nil {
			r.running.dropped = true
			r.running.stop()
		}
	}
}

// next starts the oldest turn if none runs.
func (r *run) next(ctx context.Context) {
	if r.running != nil || len(r.waiting) == 0 {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	w := &runningTurn{turn: r.waiting[0], stop: stop, done: make(chan outcome, 1)}
	r.waiting = r.waiting[1:]
	r.running = w
	session, prompt := r.session, w.prompt
	if r.system != "" && (session == "" || r.cli.sessions == nil) {
		prompt = r.system + "\n" + prompt
	}
	go func() { w.done <- r.cli.ask(ctx, session, prompt) }()
}

// answer writes the frame of the running turn.
func (r *run) answer(o outcome) error {
	w := r.running
	w.stop()
	r.running = nil
	if w.dropped {
		return nil
	}
	if o.failure != nil {
		return r.fail(w.id, o.failure)
	}
	if o.session != "" {
		r.session = o.session
	}
	return agentproto.WriteFrame(r.out, agentproto.Frame{
		Status: agentproto.StatusOK, TurnID: w.id, NewSessionID: o.session, Result: agentproto.Cut(o.text, agentproto.MaxResult),
	})
}

// fail reports a failed turn and ends the run. It names no session: one that the turn continued is
// kept by its kind, and one that the turn began may not be stored.
func (r *run) fail(turnID string, f *failure) error {
	frame := agentproto.Frame{Status: agentproto.StatusError, TurnID: turnID, Error: agentproto.Truncate(f.text, agentproto.MaxError), Kind: f.kind}
	if f.kind == agentproto.KindTransient {
		frame.RetryAfter = min(math.Ceil(f.retryAfter.Seconds()), agentproto.MaxRetryAfter.Seconds())
	}
	return errors.Join(errors.New(f.text), agentproto.WriteFrame(r.out, frame))
}

// stopTurn ends the running turn.
func (r *run) stopTurn() {
	if r.running != nil {
		r.running.stop()
		<-r.running.done
	}
}
