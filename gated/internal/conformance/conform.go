package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/runtime"
	"arizuko/pkg/agentproto"
)

// Patience is how long Conform waits for an agent.
type Timeouts struct {
	Answer time.Duration // for an answer
	End    time.Duration // for the exit behind the end of input and the last answer
}

// errFailed is the error of an agent that does not conform.
var errFailed = errors.New("the agent does not keep to the protocol")

// notShown says why a case says nothing about an agent.
type notShown string

func (n notShown) Error() string { return string(n) }

// failure is an error and what to do about it.
type failure struct{ breach }

func (f failure) Error() string { return f.what }

func fail(do, format string, args ...any) error {
	return failure{breach{fmt.Sprintf(format, args...), do}}
}

// Conform runs the cases of the protocol, each with processes of its own, and prints a verdict on
// each. The error is that one failed, or ctx's.
func (a Agent) Conform(ctx context.Context, timeouts Timeouts, out io.Writer) error {
	printer := newPrinter(out)
	var tally tally
	for i, c := range cases() {
		err := a.check(ctx, c, timeouts, printer, i == 0)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		tally.add(err)
		if i == 0 && tally.failed > 0 {
			tally.notShown += len(cases()) - 1
			printer.print(plain, "", "The other cases need an answer first.")
			break
		}
	}
	printer.print(plain, "", fmt.Sprintf("%d passed, %d failed, %d not shown", tally.passed, tally.failed, tally.notShown))
	if tally.failed > 0 {
		return errFailed
	}
	return nil
}

// tally counts verdicts.
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

// check runs one case and prints its verdict, which is also returned.
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
	if len(x.wrong) > 0 { // they say best what went wrong
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
		p.print(got, "", "ok         "+name)
		return
	case errors.As(err, &skipped):
		p.print(plain, "", fmt.Sprintf("not shown  %s: %s", name, err))
		return
	}
	p.print(bad, "", fmt.Sprintf("FAILED     %s: %s", name, err))
	var f failure
	if errors.As(err, &f) {
		p.print(plain, "           ", "do: "+f.do)
	}
	for _, line := range x.log {
		p.print(dim, "           | ", line)
	}
}

// exam is an agent in one case.
type caseRun struct {
	*workspace
	ctx      context.Context
	timeouts Timeouts
	run      *run
	frames   []answer
	wrong    []breach
	exit     *runtime.Exit
	log      []string // the last lines that the agent printed outside its frames
}

// answer is a frame and the turn it is for.
type answer struct {
	turn string
	agentproto.Frame
}

// logTail is how many lines of an agent's log are shown with a failure.
const logTail = 8

// open starts the agent; the one before must have ended.
func (x *caseRun) open() (err error) {
	x.exit, x.frames = nil, nil
	x.run, err = x.start(x.ctx)
	return err
}

// begin starts the agent with a turn and returns its number.
func (x *caseRun) begin(session, text string) (turn string, err error) {
	if err := x.open(); err != nil {
		return "", err
	}
	turn = x.nextTurn()
	return turn, x.give(turn, startLine(turn, session, text))
}

// ask gives the agent one more turn.
func (x *caseRun) ask(text string) (turn string, err error) {
	turn = x.nextTurn()
	return turn, x.give(turn, messageLine(turn, text))
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

// sendLine leaves it to what follows to find that the agent is gone.
func (x *caseRun) sendLine(line []byte) error {
	if err := x.run.proc.Send(line); err != nil && !errors.Is(err, runtime.ErrClosed) {
		return fail("read stdin until its end, also while you work on an answer", "%s", err)
	}
	return nil
}

// answers waits until turns are answered and returns their last frames, in the order of turns.
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

// unanswered says why a turn has no answer.
func (x *caseRun) unanswered(turn string) error {
	switch {
	case x.exit == nil && len(x.frames) > 0 && x.frames[len(x.frames)-1].More():
		return fail("end each turn with a frame that does not say final:false", "turn %s: more was to follow, and nothing came within %s", turn, x.timeouts.Answer)
	case x.exit == nil:
		return fail("write a frame for each turn and flush it; read stdin line by line; -wait gives it longer",
			"turn %s is not answered within %s", turn, x.timeouts.Answer)
	case x.exit.Code == 0 && len(x.frames) > 0:
		return notShown("it ends after an answer; gated starts it anew for what is left")
	}
	return fail("answer each turn before the program ends", "it ended before it answered turn %s: %s", turn, x.exit.Reason())
}

// good is answers for turns that must not fail.
func (x *caseRun) succeed(turns ...string) ([]answer, error) {
	all, err := x.answers(turns...)
	for _, a := range all {
		if a.Status == agentproto.StatusError {
			return all, fail("the cases need an agent that works: mend this first", "turn %s failed: %s", a.turn, a.Error)
		}
	}
	return all, err
}

// last is the last frame of a turn.
func (x *caseRun) last(turn string) answer {
	for _, a := range slices.Backward(x.frames) {
		if a.turn == turn {
			return a
		}
	}
	return answer{}
}

// finish ends the agent's input and waits until it is gone.
func (x *caseRun) finish() error {
	x.run.checker.closed = true
	x.run.proc.CloseInput()
	open := func() bool { return len(x.run.checker.open) > 0 }
	if err := x.until(x.timeouts.Answer, func() bool { return !open() }); err != nil {
		return err
	}
	if open() && x.exit == nil {
		return x.unanswered(x.run.checker.open[0])
	}
	return x.end()
}

// end waits until the agent, which has nothing left to do, is gone.
func (x *caseRun) end() error {
	x.run.stop(x.timeouts.End)
	return x.until(2*x.timeouts.End+time.Second, func() bool { return false })
}

// until serves the run until it is done, gone or found wrong, or the time is over. The error is
// ctx's.
func (x *caseRun) until(limit time.Duration, done func() bool) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for x.exit == nil && len(x.wrong) == 0 && !done() {
		select {
		case e := <-x.run.events:
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
		turn, wrong := x.run.checker.frame(*e.Frame)
		x.frames = append(x.frames, answer{turn, *e.Frame})
		x.wrong = append(x.wrong, wrong...)
	case e.Malformed != nil:
		x.wrong = append(x.wrong, malformed(e.Malformed))
	case e.Exit != nil:
		x.exit = e.Exit
		x.wrong = append(x.wrong, x.run.ended(*e.Exit)...)
	default:
		x.wrong = append(x.wrong, printed(e.printed)...)
		x.log = append(x.log, strings.TrimSpace(e.printed))
		x.log = x.log[max(0, len(x.log)-logTail):]
	}
}

// leave receives what a run has to say that is killed.
func (x *caseRun) drain() {
	if x.run != nil && x.exit == nil {
		for range x.run.events {
		}
	}
}
