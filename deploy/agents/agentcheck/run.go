package main

import (
	"time"

	"arizuko/pkg/agentproto"
)

// run is one process of the agent with its protocol checker.
type run struct {
	proc    *process
	checker protocolChecker
	left    time.Time // when its end was requested
	grace   time.Duration

	failGrace time.Duration // after a failure or an interrupt
}

// send writes a line to the agent. If the agent has stopped reading, its exit reports that.
func (r *run) send(in agentproto.Input) error {
	line, err := agentproto.Encode(in)
	if err != nil {
		return err
	}
	return r.proc.send(line)
}

// finish closes the agent's input and lets it answer its open turns, without a limit.
func (r *run) finish() {
	r.checker.closed = true
	r.proc.closeInput()
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
	go r.proc.stop(grace)
}

// abandon stops an agent that was interrupted or has failed. A late exit is not a breach then: it may
// be working.
func (r *run) abandon() {
	r.checker.cancel()
	r.checker.closed = true
	go r.proc.stop(r.failGrace)
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
func (r *run) answer(e *agentproto.Event, option int) (wrong breaches) {
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
func (r *run) frame(f agentproto.Frame) (turns []string, wrong breaches) {
	turns, wrong = r.checker.frame(f)
	if r.checker.closed && len(r.checker.open) == 0 {
		r.stop(EOFGrace)
	}
	return turns, wrong
}

// ended returns the breaches in the agent's exit.
func (r *run) ended(e exit) (wrong breaches) {
	late := !r.left.IsZero() && time.Since(r.left) >= r.grace
	return r.checker.exit(e, late)
}
