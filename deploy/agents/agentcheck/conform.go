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
	frames   []answer
	events   int
	asks     int // questions that it has asked
	wrong    []breach
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
func (x *caseRun) open() (err error) {
	x.exit, x.frames = nil, nil
	x.run, err = x.start(x.ctx)
	return err
}

// begin starts the agent with a turn and returns the turn's id.
func (x *caseRun) begin(session, text string) (turn string, err error) {
	if err := x.open(); err != nil {
		return "", err
	}
	turn = x.nextTurn()
	return turn, x.give(turn, startLine(turn, session, text))
}

// ask sends one more turn.
func (x *caseRun) ask(text string) (turn string, err error) {
	turn = x.nextTurn()
	return turn, x.give(turn, x.run.furtherLine(turn, text))
}

func (x *caseRun) give(turn string, in agentproto.Input) error {
	x.run.checker.asked(turn)
	return x.send(in)
}

func (x *caseRun) send(in agentproto.Input) error {
	line, err := agentproto.Encode(in)
	if err != nil {
		return err
	}
	return x.sendLine(line)
}

// sendLine ignores that the agent has exited: the next wait reports it.
func (x *caseRun) sendLine(line []byte) error {
	if err := x.run.proc.send(line); err != nil && !errors.Is(err, errClosed) {
		return fail("read stdin until its end, also while you work on an answer", "%s", err)
	}
	return nil
}

// answers waits for the answers of turns and returns their last frames, in the order of turns.
func (x *caseRun) answers(turns ...string) (last []answer, err error) {
	open := func(turn string) bool { return !x.run.checker.answered(turn) }
	if err := x.until(x.timeouts.Answer, func() bool { return !slices.ContainsFunc(turns, open) }); err != nil {
		return nil, err
	}
	for _, turn := range turns {
		if !open(turn) {
			last = append(last, x.last(turn))
		}
	}
	if len(last) == len(turns) {
		return last, nil
	}
	return last, x.unanswered(turns[slices.IndexFunc(turns, open)])
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
func (x *caseRun) succeed(turns ...string) ([]answer, error) {
	all, err := x.answers(turns...)
	for _, a := range all {
		if a.Status == agentproto.StatusError {
			return all, fail("fix this first: the cases need an agent that answers", "turn %s failed: %s", a.turn,
				a.Error)
		}
	}
	return all, err
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
func (x *caseRun) finish() error {
	x.run.checker.closed = true
	x.run.proc.closeInput()
	open := func() bool { return len(x.run.checker.open) > 0 }
	if err := x.until(x.timeouts.Answer, func() bool { return !open() }); err != nil {
		return err
	}
	if open() && x.exit == nil {
		return x.unanswered(x.run.checker.open[0])
	}
	return x.end()
}

// end waits for the exit of an agent that has nothing left to do.
func (x *caseRun) end() error {
	x.run.stop(x.timeouts.End)
	return x.until(2*x.timeouts.End+time.Second, func() bool { return false })
}

// until handles events until done returns true, the process exits, a breach is found or limit has
// passed. It returns ctx's error.
func (x *caseRun) until(limit time.Duration, done func() bool) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for x.exit == nil && len(x.wrong) == 0 && !done() {
		select {
		case e := <-x.run.proc.events:
			x.handle(e)
		case <-timer.C:
			return nil
		case <-x.ctx.Done():
			return x.ctx.Err()
		}
	}
	return nil
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
