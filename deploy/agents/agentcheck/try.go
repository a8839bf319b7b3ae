package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

// silence is the time without an event after which a hint is printed.
const silence = 15 * time.Second

// Try runs a conversation: each line of in is a turn, "/stop" interrupts, the end of in lets the
// agent finish. The end of ctx kills it and is the error then; breaches of the protocol are errors too.
func (a Agent) Try(ctx context.Context, in io.Reader, out io.Writer) error {
	p, err := a.workspace()
	if err != nil {
		return err
	}
	defer p.remove()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &session{workspace: p, printer: newPrinter(out, a.Redact), lines: inputLines(ctx, in), session: a.Session,
		hint: time.NewTimer(silence)}
	defer t.hint.Stop()
	t.printer.intro(p)
	t.printer.write(plain, "", "Each line is a message. /stop interrupts, Ctrl-D ends the input, Ctrl-C kills.")
	err = t.serve(ctx)
	if t.run != nil { // after an error
		cancel()
		for range t.run.proc.events {
		}
	}
	if err == nil && t.printer.breached > 0 {
		err = fmt.Errorf("breaches of the protocol: %d", t.printer.breached)
	}
	return err
}

// inputLines returns the lines of in without blank ones, and is closed at the end of in.
func inputLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			line := strings.TrimSpace(scanner.Text())
			if line == "" {
				continue
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// session is a conversation at a terminal.
type session struct {
	*workspace
	printer *printer
	lines   <-chan string // nil after the end of input
	run     *run          // nil between runs
	session string
	asked   time.Time // time of the last turn
	// questions of the agent that are open
	questions []*agentproto.Event
	hint      *time.Timer
}

func (t *session) serve(ctx context.Context) error {
	for t.lines != nil || t.run != nil {
		var events <-chan event
		if t.run != nil {
			events = t.run.proc.events
		}
		select {
		case line, open := <-t.lines:
			if err := t.handleLine(ctx, line, open); err != nil {
				return err
			}
		case e := <-events:
			t.handle(e)
		case <-t.hint.C:
			t.hintIfQuiet()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// handleLine handles a line of input, or its end.
func (t *session) handleLine(ctx context.Context, line string, open bool) error {
	switch {
	case !open:
		t.lines = nil
		if t.run != nil {
			t.printer.write(sent, "→ ", "end of input")
			t.run.finish()
		}
		return nil
	case line == "/stop":
		t.stop()
		return nil
	case t.answers(line):
		return nil
	case line == "/system":
		t.printer.write(dim, "  ", systemText)
		return nil
	}
	if t.run != nil && t.run.checker.closed {
		t.await() // it is exiting: the line is for the next run
	}
	return t.ask(ctx, line)
}

// question keeps a question of the agent until a line answers it. One that gated would refuse is refused at once.
func (t *session) question(e *agentproto.Event) {
	switch {
	case e.Ask == nil:
	case e.Ask.Check() != nil:
		t.printer.breaches(t.run.answer(e, 0))
	default:
		t.questions = append(t.questions, e)
		t.printer.write(plain, "", "Answer the question with the number of an option, or with 0 for no answer in time.")
	}
}

// answers answers the agent's oldest open question, if a line is the number of an option.
func (t *session) answers(line string) bool {
	if len(t.questions) == 0 || t.run == nil {
		return false
	}
	e := t.questions[0]
	option, err := strconv.Atoi(line)
	if err != nil || option < 0 || option > len(e.Ask.Options) {
		return false
	}
	t.questions = t.questions[1:]
	t.printer.write(sent, "→ ", fmt.Sprintf("answer to question %s: %d", e.Ask.ID, option))
	t.run.answer(e, option)
	return true
}

// stop stops the run as gated does at /stop: an interrupt, and the end of input.
func (t *session) stop() {
	if t.run == nil || t.run.checker.closed {
		t.printer.write(plain, "", "no run to stop")
		return
	}
	t.show(agentproto.Interrupt{})
	_ = t.run.send(agentproto.Interrupt{}) // if it has exited, that is the next event
	t.printer.write(sent, "→ ", "end of input")
	t.run.abandon()
}

// ask sends a turn, to a new process if none runs.
func (t *session) ask(ctx context.Context, text string) (err error) {
	id := t.nextTurn()
	var in agentproto.Input
	if t.run == nil {
		t.questions = nil
		if t.run, err = t.start(ctx); err != nil {
			return err
		}
		in = startLine(id, t.session, text)
	} else {
		in = t.run.furtherLine(id, text)
	}
	t.run.checker.asked(id)
	t.show(in)
	t.asked = time.Now()
	t.hint.Reset(silence)
	if err := t.run.send(in); err != nil {
		t.printer.breaches(breaches{{err.Error(), "read stdin until its end, also while you work on an answer"}})
	}
	return nil
}

func (t *session) show(in agentproto.Input) {
	switch in := in.(type) {
	case agentproto.Start:
		t.printer.write(sent, "→ ", fmt.Sprintf("start, turn %s, %s, system text of %d bytes (/system prints it)",
			in.TurnID, sessionName(in.SessionID), len(in.System)))
		t.printer.write(dim, "  ", in.Prompt)
	case agentproto.Message:
		head := "message, turn " + in.TurnID
		if in.Fold {
			head += ", which may be folded into the one under way"
		}
		t.printer.write(sent, "→ ", head)
		t.printer.write(dim, "  ", in.Prompt)
	case agentproto.Interrupt:
		t.printer.write(sent, "→ ", "interrupt")
	}
}

func sessionName(session string) string {
	if session == "" {
		return "without a session"
	}
	return "session " + session
}

func (t *session) handle(e event) {
	switch {
	case e.Frame != nil:
		t.frame(*e.Frame)
	case e.Progress != nil:
		t.printer.event(e.Progress)
		t.printer.breaches(t.run.checker.event(e.Progress))
		t.question(e.Progress)
	case e.Malformed != nil:
		t.printer.breaches(breaches{malformed(e.Malformed)})
		t.fail()
	case e.Exit != nil:
		t.ended(*e.Exit)
	default:
		t.printer.write(dim, "| ", e.Printed)
		t.printer.breaches(printed(e.Printed))
	}
}

func (t *session) frame(f agentproto.Frame) {
	again := len(t.run.checker.open) == 0
	turns, wrong := t.run.frame(f)
	head := fmt.Sprintf("turn %s, %.1f s", strings.Join(turns, " with "), time.Since(t.asked).Seconds())
	switch {
	case f.More():
		head += ", more follows"
	case again && t.run.checker.cancelled:
		head += ", too late: gated discards it"
	case again:
		head += ", one more message"
	}
	if f.NewSessionID != "" && !t.run.checker.cancelled {
		head += ", session " + f.NewSessionID
		t.session = f.NewSessionID
	}
	t.printer.write(got, "← ", head)
	t.printer.answer(f)
	t.printer.breaches(wrong)
	if f.Status == agentproto.StatusError && len(turns) > 0 && !t.run.checker.cancelled {
		t.failed(f)
	}
	if t.session == "" && f.Status == agentproto.StatusOK && t.run.checker.frames == 1 {
		t.printer.write(plain, "  ", "note: no newSessionId: the next run will not remember this conversation")
	}
}

// failed goes on as gated does after an error frame.
func (t *session) failed(f agentproto.Frame) {
	switch {
	case f.Result != "":
		t.printer.write(plain, "", "gated would send the result and keep the error for operators; the turn is done")
	case f.ErrorKind() == agentproto.KindTransient:
		wait := "later"
		if d := f.RetryDelay(); d > 0 {
			wait = "after " + d.String()
		}
		t.printer.write(plain, "", "gated would end this run, keep its session, and retry the turn "+wait+
			", three times at most")
		t.run.abandon()
	case f.ErrorKind() == agentproto.KindPermanent:
		t.printer.write(plain, "", "gated would end this run, keep its session, and give the turn up")
		t.run.abandon()
	default:
		t.fail()
	}
}

// fail ends a run that failed, as gated does.
func (t *session) fail() {
	t.printer.write(plain, "",
		"gated would end this run, drop its session, and retry the turn in another, three times at most")
	t.session = ""
	t.run.abandon()
}

func (t *session) ended(e exit) {
	t.printer.breaches(t.run.ended(e))
	if open := t.run.checker.open; len(open) > 0 {
		t.printer.write(plain, "", "gated would give turn "+strings.Join(open, ", ")+" to another run")
	}
	t.printer.write(plain, "", "the agent exited: "+e.reason())
	t.run = nil
}

// await handles the run's events until its exit.
func (t *session) await() {
	for t.run != nil {
		t.handle(<-t.run.proc.events)
	}
}

// hintIfQuiet prints a hint after a long silence.
func (t *session) hintIfQuiet() {
	if t.run == nil || len(t.run.checker.open) == 0 {
		return
	}
	hint := fmt.Sprintf("no frame for %s: does the agent flush its output, and read stdin line by line?", silence)
	if t.run.checker.frames == 0 {
		hint += " " + aFrame
	}
	t.printer.write(plain, "", hint)
}
