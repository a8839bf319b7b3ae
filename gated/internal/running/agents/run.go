package agents

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/queue"
	"arizuko/gated/internal/running/runtime"
	"arizuko/gated/internal/shown/briefing"
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
	ctlTurns                   // look in the rows for new turns
	ctlReread                  // look in the rows for all changes
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

// runInfo is shared by the parts of a run. It does not change any more once serve has completed the setup.
type runInfo struct {
	env   *env
	row   msg.Run
	setup setup
}

// scope is what the run's writes touch, unless they are for other groups.
func (r *runInfo) scope() store.Scope { return store.Scope{r.row.ChatJID, r.row.Folder} }

// run is one agent process and its turns. Any goroutine may use the inbox; the rest belongs to the goroutine that
// serves the run.
type run struct {
	*runInfo
	m     *Manager
	inbox *mailbox

	agent    agent
	turns    turns
	prompts  prompts
	outputs  outputs
	progress progressList
	asks     questions
	over     overrun
	settings settings
	offers   offers
	heard    int   // how many of the agent's reports were handled
	recorded int64 // the turn whose changes of files are remembered, 0 for none
}

func newRun(m *Manager, row msg.Run, setup setup) *run {
	info := &runInfo{env: m.env, row: row, setup: setup}
	r := &run{
		runInfo: info, m: m, inbox: newMailbox(), asks: questions{open: map[int64]asking{}},
		turns:    turns{row: &info.row, prompted: map[int64]int64{}},
		outputs:  outputs{runInfo: info, turns: map[int64]*output{}},
		settings: settings{runInfo: info, groups: m.groups}, offers: offers{runInfo: info},
		progress: progressList{runInfo: info, turns: map[int64]*progress{}, timer: stoppedTimer()},
	}
	r.agent = agent{runInfo: info, groups: m.groups, queue: m.sched.queue, inbox: r.inbox, access: noTools{},
		deadline: stoppedTimer()}
	r.prompts = prompts{runInfo: info, files: m.files, settings: &r.settings, turns: &r.turns}
	return r
}

// stoppedTimer does not fire before it is reset.
func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// serve starts the process, sends it turn and all further turns, and stores the fate
// of those that it leaves.
func (r *run) serve(turn *msg.Turn) {
	r.agent.resetDeadline()
	defer r.agent.deadline.Stop()
	defer r.progress.timer.Stop()
	err := r.agent.openEgress()
	if url := r.env.toolsURL(r.row.Runtime); url != "" {
		r.agent.access = r.env.cfg.Tools(r.row, func(text string) string { return r.setup.redact(text) })
		r.agent.access.BeforeCalls(r.agent.awaitFrames)
		defer r.agent.access.Close()
	}
	r.setup.redact, r.setup.growing = r.m.groups.redactors(r.setup.env,
		append(r.agent.egress.Hidden, r.agent.access.Token())...)
	if err == nil {
		err = r.agent.launch()
	}
	if err != nil {
		r.finalize(runtime.Exit{Err: err})
		return
	}
	r.m.problems.machineWorks(r.row.Runtime)
	r.m.meter.runs.WithLabelValues(r.row.Runtime).Inc()
	r.env.log.Debug("run started", "run", r.row.ID, "folder", r.row.Folder, "chat", r.row.ChatJID,
		"runtime", r.row.Runtime, "pid", r.agent.proc.PID())
	r.accept(turn)
	exit := r.loop()
	r.record(0)
	r.finalize(exit)
}

// loop serves the process until its exit.
func (r *run) loop() runtime.Exit {
	deafened := r.agent.proc.Deaf()
	for {
		select {
		case t := <-r.inbox.piped:
			r.collect()
			r.claim(t)
		case t := <-r.inbox.stored:
			r.collect()
			r.take(t)
		case handled := <-r.inbox.idle:
			close(handled)
		case ev := <-r.agent.proc.Events():
			for r.heard < ev.Reports {
				r.hear(<-r.agent.proc.Reports())
			}
			if r.output(ev); ev.Exit != nil {
				return *ev.Exit
			}
		case e := <-r.reports():
			r.heard++
			r.output(runtime.Event{Progress: e})
		case <-deafened:
			deafened, r.agent.deaf = nil, true
			r.endDeaf()
		case <-r.progress.timer.C:
			r.collect()
			if r.progress.store() {
				r.checkBudget()
			}
		case <-r.agent.deadline.C:
			r.collect()
			if len(r.turns.unanswered) > 0 && len(r.asks.waiting) == 0 {
				r.agent.fail(failure{problem: fmt.Sprintf("the agent wrote no frame for %s", r.setup.timeout())})
			}
		case <-r.inbox.signals[ctlClose]:
			r.collect()
			r.closeIdle()
		case <-r.inbox.signals[ctlDrain]:
			r.collect()
			r.catchUp() // its turns may be older than the signal
			r.drain()
		case <-r.inbox.signals[ctlShutdown]:
			r.agent.stop(phaseShuttingDown, r.env.cfg.Graces.EOF)
		case <-r.inbox.signals[ctlTurns]:
			r.collect()
			_ = r.takeTurns() // else it reads them again later
		case <-r.inbox.signals[ctlReread]:
			r.collect()
			r.reread()
		case <-r.inbox.signals[ctlAsks]:
			r.checkAsks()
		case <-r.inbox.signals[ctlConfig]:
			r.collect()
			r.catchUp() // its turns may be older than the change
			r.reconfigure()
		}
	}
}

// output handles what the agent has written.
func (r *run) output(ev runtime.Event) {
	switch {
	case ev.Exit != nil, r.agent.failure.problem != "":
		// once it has failed, further frames do not count
	case ev.Frame != nil:
		r.catchUp() // a turn that was cancelled before is not the one at work after it
		r.frame(*ev.Frame)
	case ev.Progress != nil:
		r.catchUp() // the turn may be on the way
		r.event(ev.Progress)
	case ev.Malformed != nil:
		r.malformed(ev.Malformed)
	}
}

// reports returns the agent's reports of progress. While one is about to be stored, the others wait: they are collected
// when it is, and don't wake the run.
func (r *run) reports() <-chan *agentproto.Event {
	if r.progress.due {
		return nil
	}
	return r.agent.proc.Reports()
}

// collect handles the reports that wait. It comes before whatever changes the turns, since a report may not name its
// turn.
func (r *run) collect() {
	for {
		select {
		case e := <-r.agent.proc.Reports():
			r.hear(e)
		default:
			return
		}
	}
}

// hear handles a report that waited.
func (r *run) hear(e *agentproto.Event) {
	r.heard++
	if r.agent.failure.problem == "" {
		r.event(e)
	}
}

// closeIdle lets the process finish, unless a turn was stored for it by now: the
// rows say so before its input is closed.
func (r *run) closeIdle() {
	drained := false
	err := r.env.persistIn(r.env.ctx, r.scope(), func(tx *store.Tx) (err error) {
		drained, err = rows.DrainIdleRun(tx, r.row.ID)
		return err
	})
	ends := drained || r.agent.ending()
	switch {
	case err != nil: // gated is stopping
	case ends && len(r.turns.unanswered) > 0:
		r.reread() // they were cancelled and the interrupt is on the way, or they are its last ones
	case ends:
		r.agent.stop(phaseClosing, r.env.cfg.Graces.EOF)
	default:
		r.m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Kept(r.row.ID) })
		r.reread() // it was closed by /new, or its turn is on the way
	}
}

// drain lets the process answer its turns, without a limit of time.
func (r *run) drain() {
	if len(r.turns.unanswered) == 0 {
		r.agent.stop(phaseClosing, r.env.cfg.Graces.EOF)
		return
	}
	r.agent.leaveQueue(r.agent.phase.reach(phaseDraining))
	if len(r.asks.open) == 0 { // else it could not be answered
		r.agent.phase.reach(phaseClosing)
		r.agent.proc.CloseInput()
	}
}

// catchUp handles the turns and cancellations that the run received before.
func (r *run) catchUp() {
	select {
	case t := <-r.inbox.piped:
		r.claim(t)
	default:
	}
	select {
	case <-r.inbox.signals[ctlReread]:
		r.reread()
		return
	default:
	}
	select {
	case t := <-r.inbox.stored:
		r.take(t)
	case <-r.inbox.signals[ctlTurns]:
		_ = r.takeTurns() // else it reads them again later
	default:
	}
}

// report tells the queue how many turns the run has.
func (r *run) report() {
	r.m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Holds(r.row.ID, len(r.turns.unanswered)) })
}

// accept prompts the agent with a turn that is stored for the run, unless it has it, or had it
// before and the rows do not say that it is to be asked again.
func (r *run) accept(t *msg.Turn) {
	if r.turns.has(t.ID) {
		return
	}
	if _, known := r.turns.prompted[t.ID]; known {
		now, err := r.env.st.Turn(r.env.ctx, t.ID)
		if err != nil || now == nil || now.State != msg.TurnRunning || now.RunID != r.row.ID {
			return
		}
	}
	r.env.log.Debug("turn piped", "turn", t.ID, "run", r.row.ID, "folder", t.Folder, "chat", t.ChatJID)
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
	r.agent.access.Close()
	r.env.failPanicked(t.ID, problem)
	r.agent.stop(phaseClosing, r.env.cfg.Graces.Fail)
}

// claim gives the run a queued turn, after those that are stored for it already.
func (r *run) claim(t queue.Turn) {
	var turn *msg.Turn
	err := r.env.retryDB(r.env.ctx, "read the turns of a run", r.takeTurns)
	if err == nil && !r.agent.ending() {
		err = r.env.persistIn(r.env.ctx, append(r.scope(), r.m.slots()), func(tx *store.Tx) (err error) {
			if len(r.turns.unanswered) == 0 {
				if free, err := rows.FreeSlot(tx, r.env.cfg.MaxAgents); err != nil || !free {
					return errors.Join(err, errNoSlot)
				}
			}
			if err = rows.TakeTurn(tx, t.ID, r.row.ID, r.env.now()); err == nil {
				turn, err = tx.Turn(r.env.ctx, t.ID)
			}
			return err
		})
		if err != nil {
			turn = nil
		}
	}
	r.claimed(turn)
}

// claimed sends the prompt of a turn that the run has claimed, nil if it could not, and
// tells the queue.
func (r *run) claimed(turn *msg.Turn) {
	if turn != nil {
		r.accept(turn)
	}
	r.m.sched.do(func(q *queue.GroupQueue) queue.Actions {
		return q.Took(r.row.ID, len(r.turns.unanswered),
			turn != nil)
	})
	if turn == nil && !r.agent.ending() {
		r.reread() // it may have been closed
	}
}

// sendPrompt writes a turn's prompt to the agent.
func (r *run) sendPrompt(t *msg.Turn) {
	if r.agent.ending() {
		return // finalize queues it again
	}
	facts, err := r.prompts.facts(t)
	if err != nil {
		return // gated is stopping
	}
	if r.prompts.started && !facts.Running { // it was cancelled meanwhile; of a first one the agent is interrupted
		return
	}
	if r.prompts.started && r.m.budgets.refuse(t, r.settings.now.Budget) { // of the first one open has checked it
		return
	}
	text, session, err := r.prompts.build(t, facts)
	if err != nil {
		return // gated is stopping
	}
	if r.settings.changed { // finalize queues it again, for a run with the new configuration
		r.drain()
		return
	}
	r.tellFolds()
	delete(r.outputs.turns, t.ID) // it may be a retry
	delete(r.progress.turns, t.ID)
	if r.turns.unanswered = append(r.turns.unanswered, t); len(r.turns.unanswered) == 1 {
		r.record(t.ID)
		r.m.marks.unmark(t, r.row.ID)
		r.agent.resetDeadline()
	}
	r.agent.access.Begin(t.ID, &r.settings.now)
	r.agent.setTurns(r.turns.unanswered)
	r.env.log.Debug("prompt sent", "turn", t.ID, "run", r.row.ID, "bytes", len(text))
	since(r.m.meter.waits, r.row.Runtime, t, r.env.cfg.Now())
	id := strconv.FormatInt(t.ID, 10)
	if r.prompts.started {
		failpoint.At(failpoint.Piping)
		r.agent.send(agentproto.Message{TurnID: id, Prompt: text,
			Fold: r.mayFold() && r.turns.fold()})
		r.endDeaf()
		return
	}
	r.prompts.started = true
	r.agent.send(agentproto.Start{
		TurnID: id, Prompt: text, SessionID: session, GroupFolder: t.Folder, ChatJID: t.ChatJID,
		Topic: t.Topic, ThreadID: t.ThreadID, EngageTopic: t.Place, Surface: t.Surface, Ceiling: t.Ceiling,
		MCP: r.agent.mcp(), System: r.prompts.system(t, r.agent.access.Tools()), Model: r.setup.Agent.Model,
	})
}

// mayFold reports whether the agent takes in turns while it works on one.
func (r *run) mayFold() bool { return r.turns.folds && r.settings.now.Steer != groupconfig.SteerQueue }

// tellFolds tells the queue whether the run gets turns before it has answered.
func (r *run) tellFolds() {
	if may := r.mayFold(); may != r.turns.toldFolds {
		r.turns.toldFolds = may
		r.m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Folds(r.row.ID, may) })
	}
}

// system is the text for the system prompt of the agent's model. A run serves one chat and
// thread, so that it holds for all its turns.
func (p *prompts) system(t *msg.Turn, tools []string) string {
	return briefing.Text(briefing.Input{
		Assistant: p.settings.now.AssistantName, Names: p.env.cfg.Names, ChatJID: t.ChatJID, Surface: t.Surface,
		Ceiling: t.Ceiling, Tools: tools,
	})
}

// endDeaf ends an agent that takes no more input when it has answered: another run gets the rest.
func (r *run) endDeaf() {
	if r.agent.deaf && r.turns.last != nil && len(r.turns.unanswered) > 0 {
		go r.agent.proc.Stop(r.env.cfg.Graces.Fail)
	}
}

// take takes a turn as it was stored for the run. If there are more, or a turn may have been cancelled since, it reads
// the rows.
func (r *run) take(t *msg.Turn) {
	if len(r.inbox.stored)+len(r.inbox.signals[ctlTurns])+len(r.inbox.signals[ctlReread]) > 0 {
		_ = r.takeTurns() // else it reads them again later
		return
	}
	r.accept(t)
	r.report()
}

// takeTurns takes the turns that are stored for the run. Without the rows it tries again later: frames, exits and time
// limits don't wait for the database.
func (r *run) takeTurns() error {
	r.inbox.forgetStored() // the rows have them, unless they were cancelled
	turns, err := rows.RunTurns(r.env.ctx, r.env.st.Reader, r.row.ID)
	if err != nil {
		r.rereadLater()
		return err
	}
	for _, t := range turns {
		r.accept(t)
	}
	r.report()
	return nil
}

func (r *run) rereadLater() { time.AfterFunc(minRetryDelay, func() { r.inbox.control(ctlReread) }) }

// reread carries out everything that the rows say about the run.
func (r *run) reread() {
	if r.takeTurns() != nil {
		return
	}
	r.interruptCancelled()
	r.noteChanges()
	open, err := rows.RunTakes(r.env.ctx, r.env.st.Reader, r.row.ID)
	if err == nil && !open && !r.agent.ending() { // it was closed, or a /stop cancelled a turn that it just answered
		r.drain()
	}
	r.checkAsks() // the next sweep looks again for anything that could not be read
}

// interruptCancelled interrupts the agent if the turn at work was cancelled.
func (r *run) interruptCancelled() {
	if len(r.turns.unanswered) == 0 {
		return
	}
	oldest, err := r.env.st.Turn(r.env.ctx, r.turns.unanswered[0].ID)
	if err != nil {
		r.rereadLater()
	} else if oldest != nil && oldest.State == msg.TurnCancelled {
		r.agent.interrupt()
	}
}

// noteChanges gives an agent that folds a turn of the edits and deletions that came while it works. Another one reads
// of them in its next prompt.
func (r *run) noteChanges() {
	if !r.mayFold() || r.agent.ending() || len(r.turns.unanswered) == 0 {
		return
	}
	var notes *msg.Turn
	err := r.env.st.WriteIn(r.env.ctx, r.scope(), func(tx *store.Tx) (err error) {
		notes, err = rows.PutNotes(tx, r.turns.unanswered[0], r.env.now())
		return err
	})
	if err == nil && notes != nil { // else the next prompt has them
		r.accept(notes)
		r.report()
	}
}
