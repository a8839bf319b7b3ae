package agents

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"arizuko/gated/internal/running/queue"
	"arizuko/gated/internal/running/runtime"
	"arizuko/gated/internal/shown/briefing"
	"arizuko/gated/internal/shown/turncontext"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// control is a signal to a run.
type control int

const (
	ctlClose    control = iota // exit, unless there is a turn by now
	ctlDrain                   // answer the open turns and exit
	ctlShutdown                // gated is stopping
	ctlReread                  // look in the rows for what was missed
	ctlAsks                    // look for the answers to questions
	ctlConfig                  // the configuration of some group has changed
	controls
)

// failure is why a run failed.
type failure struct {
	problem string // "" if it did not
	kind    msg.ErrorKind
	turn    int64         // the turn that failed, 0 if the agent named none
	delay   time.Duration // before the next attempt, if that is longer than the backoff
	setup   bool          // the agent is not set up correctly
	session string        // to be stored unless the kind is session, "" for the one before
}

// run is one agent process and its turns. Only its own goroutine uses the fields
// below the line.
type run struct {
	m     *Manager
	row   msg.Run
	setup setup
	inbox *mailbox
	ctl   [controls]chan struct{}
	// idle gets a channel that the loop closes when it handles nothing else.
	idle  chan chan struct{}
	piped atomic.Bool // there are several unanswered turns

	proc          *runtime.Proc
	unanswered    []*msg.Turn
	last          *msg.Turn // the turn answered last
	answered      bool
	shown         turncontext.Shown
	shownThrough  map[int64]int64     // turn → the last decision in its prompt
	outputs       map[int64]*output   // by turn
	progress      map[int64]*progress // by turn
	storing       bool                // storeTimer is to fire
	storeTimer    *time.Timer         // then what has changed of the progress is stored
	storedAt      time.Time
	overTurn      int64 // has used up a budget
	overSince     time.Time
	asks          map[int64]asking // questions that the agent waits for, by their rows
	waiting       []int64          // turns that wait for users
	folds         bool             // the agent can take a turn in while it works on another one
	ignored       int              // frames for no turn of the run
	models        agentproto.Models
	offered       int    // how often the agent has changed models
	started       bool   // the start line is sent
	announcedDate string // the date that its agent was given last
	failure       failure
	current       currentConfig
	configChanged bool // its group's configuration has changed since it began
	stopping      bool // it is ending; turns it leaves lose no attempt
	inputClosed   bool // its agent gets nothing more
	deaf          bool // its agent has closed its stdin
	aborted       bool // it was interrupted: nothing counts as a failure now
	shuttingDown  bool // gated is stopping: likewise
	deadline      *time.Timer
	access        Access // to the tools
}

func newRun(m *Manager, row msg.Run, setup setup) *run {
	r := &run{m: m, row: row, setup: setup, access: noTools{}, inbox: newMailbox(), idle: make(chan chan struct{}), shownThrough: map[int64]int64{}, outputs: map[int64]*output{}, progress: map[int64]*progress{}, asks: map[int64]asking{}}
	for i := range r.ctl {
		r.ctl[i] = make(chan struct{}, 1)
	}
	return r
}

// control sends the run a signal, once if it is sent twice.
func (r *run) control(c control) { notify(r.ctl[c]) }

// serve starts the process, sends it turn and all further turns, and stores what
// becomes of those that it leaves.
func (r *run) serve(turn *msg.Turn) {
	r.deadline = time.NewTimer(r.timeout())
	defer r.deadline.Stop()
	r.storeTimer = time.NewTimer(time.Hour)
	defer r.storeTimer.Stop()
	r.storeTimer.Stop()
	if url := r.m.toolsURL(r.row.Runtime); url != "" {
		r.access = r.m.cfg.Tools(r.row, func(text string) string { return r.setup.redact(text) })
		r.setup.redact, r.setup.growing = r.m.redactors(r.setup.env, r.access.Token())
		r.access.BeforeCalls(r.awaitFrames)
		defer r.access.Close()
	}
	if err := r.launch(); err != nil {
		r.finalize(runtime.Exit{Err: err})
		return
	}
	r.m.problems.machineWorks(r.row.Runtime)
	r.m.meter.runs.WithLabelValues(r.row.Runtime).Inc()
	r.logStarted()
	r.accept(turn)
	r.finalize(r.loop())
}

func (r *run) timeout() time.Duration { return time.Duration(r.setup.Timeouts.Timeout) }

// loop serves the process until its exit.
func (r *run) loop() runtime.Exit {
	deafened := r.proc.Deaf()
	for {
		select {
		case <-r.inbox.ready:
			r.readMail()
		case handled := <-r.idle:
			close(handled)
		case ev := <-r.proc.Events():
			switch {
			case ev.Exit != nil:
				return *ev.Exit
			case r.failure.problem != "":
				// it has failed: further frames do not count
			case ev.Frame != nil:
				r.readMail() // a turn that was cancelled before is not the one at work after it
				r.frame(*ev.Frame)
			case ev.Progress != nil:
				r.readMail() // the turn may be on the way
				r.event(ev.Progress)
			case ev.Malformed != nil:
				r.malformed(ev.Malformed)
			}
		case <-deafened:
			deafened = nil
			r.inputLost()
		case <-r.storeTimer.C:
			r.storeProgress()
		case <-r.deadline.C:
			if len(r.unanswered) > 0 && len(r.waiting) == 0 {
				r.fail(failure{problem: fmt.Sprintf("the agent wrote no frame for %s", r.timeout())})
			}
		case <-r.ctl[ctlClose]:
			r.closeIdle()
		case <-r.ctl[ctlDrain]:
			r.readMail() // what was sent before the signal
			r.drain()
		case <-r.ctl[ctlShutdown]:
			r.shuttingDown = true
			r.stop(r.m.cfg.Graces.EOF)
		case <-r.ctl[ctlReread]:
			r.reread()
			r.checkAsks()
		case <-r.ctl[ctlAsks]:
			r.checkAsks()
		case <-r.ctl[ctlConfig]:
			r.readMail() // what was sent before the change
			r.reconfigure()
		}
	}
}

// closeIdle lets the process finish, unless a turn was stored for it by now: the
// rows say so before its input is closed.
func (r *run) closeIdle() {
	drained := false
	err := r.m.persist(r.m.ctx, func(tx *store.Tx) (err error) {
		drained, err = tx.DrainIdleRun(r.row.ID)
		return err
	})
	switch {
	case err != nil: // gated is stopping
	case (drained || r.stopping) && len(r.unanswered) > 0:
		r.reread() // they were cancelled and the interrupt is on the way, or they are its last ones
	case drained || r.stopping:
		r.stop(r.m.cfg.Graces.EOF)
	default:
		r.m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Kept(r.row.ID) })
		r.reread() // it was closed by /new, or its turn is on the way
	}
}

// drain lets the process answer its turns, without a limit of time.
func (r *run) drain() {
	if len(r.unanswered) == 0 {
		r.stop(r.m.cfg.Graces.EOF)
		return
	}
	r.takeNoMore()
	if len(r.asks) == 0 { // else it could not be answered
		r.inputClosed = true
		r.proc.CloseInput()
	}
}

// abort interrupts the process.
func (r *run) abort() {
	if r.aborted {
		return
	}
	r.aborted = true
	r.access.Close()
	r.send(agentproto.Interrupt{})
	r.stop(r.m.cfg.Graces.Fail)
}

// stop closes the process's input and, after grace, kills it.
func (r *run) stop(grace time.Duration) {
	r.inputClosed = true
	go r.proc.Stop(grace)
	r.takeNoMore()
}

// fail ends the run as failed.
func (r *run) fail(f failure) {
	if r.aborted || r.shuttingDown || r.failure.problem != "" {
		return
	}
	f.problem, f.kind = r.problem(f.problem), cmp.Or(f.kind, msg.ErrorSession)
	r.failure, r.inputClosed = f, true
	r.access.Close()
	go r.proc.Stop(r.m.cfg.Graces.Fail)
	r.takeNoMore()
}

// takeNoMore keeps further turns from the run. Those that are stored for it all the
// same are queued again at its end.
func (r *run) takeNoMore() {
	if r.stopping {
		return
	}
	r.stopping = true
	r.m.queue.Drain(r.row.ID)
	if err := r.m.st.Write(r.m.ctx, func(tx *store.Tx) error { return tx.DrainRun(r.row.ID) }); err != nil && r.m.ctx.Err() == nil {
		r.m.log.Warn("run not marked as draining", "run", r.row.ID, "err", err)
	}
}

// readMail takes the turns that were sent to the run.
func (r *run) readMail() {
	mail := r.inbox.receive()
	for _, t := range mail.turns {
		if !slices.Contains(mail.cancelled, t.ID) {
			r.accept(t)
		}
	}
	if mail.piped != nil {
		r.take(*mail.piped)
	}
	for _, id := range mail.cancelled {
		if len(r.unanswered) > 0 && r.unanswered[0].ID == id {
			r.abort()
		}
	}
	if len(mail.cancelled) > 0 && !r.stopping { // it may have been answered meanwhile
		r.reread()
	}
	if len(mail.turns) > 0 {
		r.report()
	}
}

// reread does what the rows say about the run and no signal did.
func (r *run) reread() {
	turns, err := r.m.st.RunTurns(r.m.ctx, r.row.ID)
	if err != nil {
		return // the next sweep looks again
	}
	takes, err := r.m.st.RunTakes(r.m.ctx, r.row.ID)
	if err != nil {
		return
	}
	for _, t := range turns {
		r.accept(t)
	}
	r.report()
	if len(r.unanswered) > 0 {
		oldest, err := r.m.st.Turn(r.m.ctx, r.unanswered[0].ID)
		if err == nil && oldest != nil && oldest.State == msg.TurnCancelled {
			r.abort()
		}
	}
	if !takes && !r.stopping { // it was closed, or a /stop cancelled a turn that it has just answered
		r.drain()
	}
}

// report tells the queue how many turns the run has.
func (r *run) report() {
	r.m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Holds(r.row.ID, len(r.unanswered)) })
}

// accept takes a turn that is stored for the run, unless it has it, or had it
// before and the rows do not say that it is to be asked again.
func (r *run) accept(t *msg.Turn) {
	if r.isOpen(t.ID) {
		return
	}
	if _, known := r.shownThrough[t.ID]; known {
		now, err := r.m.st.Turn(r.m.ctx, t.ID)
		if err != nil || now == nil || now.State != msg.TurnRunning || now.RunID != r.row.ID {
			return
		}
	}
	r.logPiped(t)
	r.guard(t, func() { r.sendPrompt(t) })
}

// guard handles one turn. A panic fails the turn and stops the run; the run's other
// turns are queued again.
func (r *run) guard(t *msg.Turn, handle func()) {
	defer func() {
		if cause := recover(); cause != nil {
			r.costTurn(t, panicError(cause))
		}
	}()
	handle()
}

// costTurn fails a turn whose handling has panicked, and stops the run.
func (r *run) costTurn(t *msg.Turn, problem error) {
	r.access.Close()
	r.m.failPanicked(t.ID, problem)
	r.stop(r.m.cfg.Graces.Fail)
}

// take gives the run a queued turn.
func (r *run) take(t queue.Turn) {
	var turn *msg.Turn
	if !r.stopping {
		err := r.m.persist(r.m.ctx, func(tx *store.Tx) (err error) {
			if len(r.unanswered) == 0 {
				if free, err := tx.FreeSlot(r.m.cfg.MaxAgents); err != nil || !free {
					return errors.Join(err, errNoSlot)
				}
			}
			if err = tx.TakeTurn(t.ID, r.row.ID, r.m.now()); err == nil {
				turn, err = tx.Turn(r.m.ctx, t.ID)
			}
			return err
		})
		if err != nil {
			turn = nil
		}
	}
	r.took(turn)
}

// took sends the prompt of a turn that the run has taken, nil if it could not, and
// tells the queue.
func (r *run) took(turn *msg.Turn) {
	if turn != nil {
		r.accept(turn)
	}
	r.m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Took(r.row.ID, len(r.unanswered), turn != nil) })
	if turn == nil && !r.stopping {
		r.reread() // it may have been closed
	}
}

// sendPrompt writes a turn's prompt to the agent.
func (r *run) sendPrompt(t *msg.Turn) {
	if r.stopping {
		return // finalize queues it again
	}
	if r.started && r.m.refuseOver(t) { // of the first one open has checked it
		return
	}
	p, err := r.prompt(t)
	if err != nil {
		return // gated is stopping
	}
	if r.configChanged { // finalize queues it again, for a run with the new configuration
		r.drain()
		return
	}
	delete(r.outputs, t.ID) // it may be a retry
	delete(r.progress, t.ID)
	if r.unanswered = append(r.unanswered, t); len(r.unanswered) == 1 {
		r.begins(t)
		r.deadline.Reset(r.timeout())
	}
	r.access.Begin(t.ID, &r.current.Config)
	r.setTurnAtWork()
	r.logPrompt(t, len(p.text))
	r.m.meter.began(r.row.Runtime, t, r.m.cfg.Now())
	id := strconv.FormatInt(t.ID, 10)
	if r.started {
		failpoint.At(failpoint.Piping)
		r.send(agentproto.Message{TurnID: id, Prompt: p.text, Fold: r.mayFold()})
		return
	}
	r.started = true
	r.send(agentproto.Start{
		TurnID: id, Prompt: p.text, SessionID: p.session, GroupFolder: t.Folder, ChatJID: t.ChatJID,
		Topic: t.Topic, ThreadID: t.ThreadID, EngageTopic: t.Place, Surface: t.Surface, Ceiling: t.Ceiling,
		MCP: r.mcp(), System: r.systemText(t), Model: r.setup.Agent.Model,
	})
}

// mayFold reports whether the agent may answer all of its turns together: users of one place have asked them, and the group's
// configuration does not say otherwise.
func (r *run) mayFold() bool {
	if !r.folds || r.current.Steer == groupconfig.SteerQueue || len(r.unanswered) < 2 {
		return false
	}
	return !slices.ContainsFunc(r.unanswered[1:], func(t *msg.Turn) bool { return !t.Folds(r.unanswered[0]) })
}

// systemText is the text for the system prompt of the agent's model. A run serves one chat and
// thread, so that it holds for all its turns.
func (r *run) systemText(t *msg.Turn) string {
	return briefing.Text(briefing.Input{
		Assistant: r.current.AssistantName, Names: r.m.cfg.Names, ChatJID: t.ChatJID, Surface: t.Surface, Ceiling: t.Ceiling,
		Tools: r.access.Tools(),
	})
}

func (r *run) send(in agentproto.Input) {
	line, err := agentproto.Encode(in)
	if err == nil {
		err = r.proc.Send(line)
	}
	_, isAnswer := in.(agentproto.Answer)
	switch {
	case err == nil:
	case errors.Is(err, runtime.ErrClosed) && isAnswer: // it waits for that
		go r.proc.Stop(r.m.cfg.Graces.Fail)
	case errors.Is(err, runtime.ErrClosed):
		r.inputLost()
	default:
		r.fail(failure{problem: "cannot write to the agent: " + err.Error()})
	}
}

// inputLost handles an agent that takes no more input, or has exited. It may still answer the turn under way.
func (r *run) inputLost() {
	r.deaf = true
	r.endDeaf()
}

// endDeaf ends an agent that takes no more input when it has answered: what is left, another run gets.
func (r *run) endDeaf() {
	if r.deaf && r.answered && len(r.unanswered) > 0 {
		go r.proc.Stop(r.m.cfg.Graces.Fail)
	}
}
