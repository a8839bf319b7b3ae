package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

// Timeouts bound Conform's waits for an agent.
type Timeouts struct {
	Answer time.Duration // for an answer
	End    time.Duration // for the exit after the end of input and the last answer
	Busy   time.Duration // after which an agent is taken to be working on its turn; 0: a second
}

// errFailed is returned for an agent that does not conform.
var errFailed = errors.New("the agent breaks the protocol")

// notShown is why a case proves nothing about an agent.
type notShown string

func (n notShown) Error() string { return string(n) }

// failure is a breach as an error.
type failure struct{ breach }

func (f failure) Error() string { return f.what }

func fail(fix, format string, args ...any) error {
	return failure{breach{fmt.Sprintf(format, args...), fix}}
}

// Conform runs the cases of the protocol, each with its own processes, and prints the result of
// each. It returns errFailed if one failed, or ctx's error.
func (a Agent) Conform(ctx context.Context, timeouts Timeouts, out io.Writer) error {
	printer := newPrinter(out, a.Redact)
	var tally tally
	for i, c := range cases() {
		err := a.check(ctx, c, timeouts, printer, i == 0)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		tally.add(err)
		if i == 0 && tally.failed > 0 {
			tally.notShown += len(cases()) - 1
			printer.write(plain, "", "The other cases were not run: they need a first answer.")
			break
		}
	}
	printer.write(plain, "", fmt.Sprintf("%d passed, %d failed, %d not shown", tally.passed, tally.failed,
		tally.notShown))
	if tally.failed > 0 {
		return errFailed
	}
	return nil
}

// tally counts results.
type tally struct{ passed, failed, notShown int }

func (t *tally) add(err error) {
	switch {
	case err == nil:
		t.passed++
	case errors.As(err, new(notShown)):
		t.notShown++
	default:
		t.failed++
	}
}

// check runs one case, prints its result, and returns it.
func (a Agent) check(ctx context.Context, c testCase, timeouts Timeouts, printer *printer, intro bool) error {
	p, err := a.workspace()
	if err != nil {
		return err
	}
	defer p.remove()
	if intro {
		printer.intro(p)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x := &caseRun{workspace: p, ctx: ctx, timeouts: timeouts}
	err = c.run(x)
	if x.err != nil {
		err = x.err
	}
	cancel()
	x.drain()
	if len(x.wrong) > 0 { // the first breach explains the failure best
		err = failure{x.wrong[0]}
	}
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		printer.result(c.name, err, x)
	}
	return err
}

func (p *printer) result(name string, err error, x *caseRun) {
	var skipped notShown
	switch {
	case err == nil:
		p.write(got, "", "ok         "+name)
		return
	case errors.As(err, &skipped):
		p.write(plain, "", fmt.Sprintf("not shown  %s: %s", name, err))
		return
	}
	p.write(bad, "", fmt.Sprintf("FAILED     %s: %s", name, err))
	var f failure
	if errors.As(err, &f) {
		p.write(plain, "           ", "fix: "+f.fix)
	}
	for _, line := range x.log {
		p.write(dim, "           | ", line)
	}
}

// caseRun is an agent in one case.
type caseRun struct {
	*workspace
	ctx      context.Context //nolint:containedctx // of this one case
	timeouts Timeouts
	run      *run
	err      error // of a step: the further ones do nothing
	frames   []answer
	events   int
	asks     int // questions that it has asked
	wrong    breaches
	exit     *exit
	log      []string // the last lines that the agent printed outside its frames
}

// answer is a frame and the turn it is for.
type answer struct {
	turn string
	agentproto.Frame
}

// logTail is the number of log lines shown with a failure.
const logTail = 8

// open starts the agent; the previous process must have ended.
func (x *caseRun) open() {
	if x.err == nil {
		x.exit, x.frames = nil, nil
		x.run, x.err = x.start(x.ctx)
	}
}

// begin starts the agent with a turn and returns the turn's id.
func (x *caseRun) begin(session, text string) (turn string) {
	x.open()
	turn = x.nextTurn()
	x.send(startLine(turn, session, text), turn)
	return turn
}

// ask sends one more turn.
func (x *caseRun) ask(text string) (turn string) {
	turn = x.nextTurn()
	if x.err == nil {
		x.send(x.run.furtherLine(turn, text), turn)
	}
	return turn
}

// send sends an input, which asks for turns.
func (x *caseRun) send(in agentproto.Input, turns ...string) {
	line, err := agentproto.Encode(in)
	if err != nil && x.err == nil {
		x.err = err
	}
	x.give(line, turns...)
}

// give sends lines that ask for turns. It ignores that the agent has exited: the next wait reports it.
func (x *caseRun) give(lines []byte, turns ...string) {
	if x.err != nil {
		return
	}
	for _, turn := range turns {
		x.run.checker.asked(turn)
	}
	if err := x.run.proc.send(lines); err != nil && !errors.Is(err, errClosed) {
		x.err = fail("read stdin until its end, also while you work on an answer", "%s", err)
	}
}

// answers waits for the answers of turns and returns their last frames, in the order of turns; empty ones for turns
// without an answer.
func (x *caseRun) answers(turns ...string) []answer {
	last := make([]answer, len(turns))
	if x.err != nil {
		return last
	}
	open := func(turn string) bool { return !x.run.checker.answered(turn) }
	x.until(x.timeouts.Answer, func() bool { return !slices.ContainsFunc(turns, open) })
	for i, turn := range turns {
		switch {
		case !open(turn):
			last[i] = x.last(turn)
		case x.err == nil:
			x.err = x.unanswered(turn)
		}
	}
	return last
}

// unanswered returns why a turn has no answer.
func (x *caseRun) unanswered(turn string) error {
	switch {
	case x.exit == nil && len(x.frames) > 0 && x.frames[len(x.frames)-1].More():
		return fail("end each turn with a frame without final:false",
			"turn %s: no further frame within %s after one with final:false", turn, x.timeouts.Answer)
	case x.exit == nil:
		fix := "write a frame for each turn and flush it; read stdin line by line; raise -wait if it needs longer"
		if len(x.frames) == 0 {
			fix += "; " + aFrame
		}
		return fail(fix, "turn %s is not answered within %s", turn, x.timeouts.Answer)
	case x.exit.code == 0 && len(x.frames) > 0:
		return notShown("it exits after an answer; gated starts it again for the other turns")
	}
	return fail("answer each turn before the program exits", "it exited before it answered turn %s: %s", turn,
		x.exit.reason())
}

// succeed is answers, with an error for a turn that failed.
func (x *caseRun) succeed(turns ...string) []answer {
	failedBefore := x.err != nil
	all := x.answers(turns...)
	i := slices.IndexFunc(all, func(a answer) bool { return a.Status == agentproto.StatusError })
	if i >= 0 && !failedBefore {
		x.err = fail("fix this first: the cases need an agent that answers", "turn %s failed: %s", turns[i],
			all[i].Error)
	}
	return all
}

// last returns the last frame of a turn.
func (x *caseRun) last(turn string) answer {
	for _, a := range slices.Backward(x.frames) {
		if a.turn == turn {
			return a
		}
	}
	return answer{}
}

// finish closes the agent's input and waits for its answers and its exit.
func (x *caseRun) finish() {
	if x.err != nil {
		return
	}
	x.run.checker.closed = true
	x.run.proc.closeInput()
	open := func() bool { return len(x.run.checker.open) > 0 }
	x.until(x.timeouts.Answer, func() bool { return !open() })
	if x.err == nil && open() && x.exit == nil {
		x.err = x.unanswered(x.run.checker.open[0])
	}
	x.end()
}

// end waits for the exit of an agent that has nothing left to do.
func (x *caseRun) end() {
	if x.err == nil {
		x.run.stop(x.timeouts.End)
		x.until(2*x.timeouts.End+time.Second, func() bool { return false })
	}
}

// until handles events until done returns true, the process exits, a breach is found or limit has
// passed.
func (x *caseRun) until(limit time.Duration, done func() bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for x.err == nil && x.exit == nil && len(x.wrong) == 0 && !done() {
		select {
		case e := <-x.run.proc.events:
			x.handle(e)
		case <-timer.C:
			return
		case <-x.ctx.Done():
			x.err = x.ctx.Err()
		}
	}
}

func (x *caseRun) handle(e event) {
	switch {
	case e.Frame != nil:
		turns, wrong := x.run.checker.frame(*e.Frame)
		for _, turn := range turns {
			x.frames = append(x.frames, answer{turn, *e.Frame})
		}
		x.wrong = append(x.wrong, wrong...)
	case e.Progress != nil:
		x.events++
		x.wrong = append(x.wrong, x.run.checker.event(e.Progress)...)
		if e.Progress.Ask != nil {
			x.asks++
			x.wrong = append(x.wrong, x.run.answer(e.Progress, 1)...)
		}
	case e.Malformed != nil:
		x.wrong = append(x.wrong, malformed(e.Malformed))
	case e.Exit != nil:
		x.exit = e.Exit
		x.wrong = append(x.wrong, x.run.ended(*e.Exit)...)
	default:
		x.wrong = append(x.wrong, printed(e.Printed)...)
		x.log = append(x.log, strings.TrimSpace(e.Printed))
		x.log = x.log[max(0, len(x.log)-logTail):]
	}
}

// drain receives the events of a killed run until its exit.
func (x *caseRun) drain() {
	if x.run != nil && x.exit == nil {
		for range x.run.proc.events {
		}
	}
}
