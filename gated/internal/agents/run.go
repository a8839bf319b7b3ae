package agents

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"arizuko/gated/internal/queue"
	"arizuko/gated/internal/runtime"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// handover is a turn on its way to a run: stored for it already, or still queued.
type handover struct {
	turn   *msg.Turn
	queued *queue.Turn
}

// control is a signal to a run.
type control int

const (
	ctlClose     control = iota // answer the open turns and exit
	ctlInterrupt                // abort everything and exit
	ctlShutdown                 // gated is stopping
	controls
)

// run is one agent process and its turns. Only its own goroutine uses the fields
// below the line.
type run struct {
	m     *Manager
	row   msg.Run
	setup setup
	turns chan handover
	ctl   [controls]chan struct{}

	proc          *runtime.Proc
	unanswered    []*msg.Turn
	last          *msg.Turn // the turn answered last
	answered      bool
	shown         shown
	shownThrough  map[int64]int64 // turn → the last decision in its prompt
	started       bool            // the start line is sent
	announcedDate string          // the date that its agent was given last
	problem       string          // why the run failed, "" if it did not
	permanent     bool            // it failed because of its setup, which only an operator can fix
	configChanged bool            // its group's configuration has changed since it began
	stopping      bool            // it is ending; turns it leaves lose no attempt
	aborted       bool            // it was interrupted: nothing counts as a failure now
	shuttingDown  bool            // gated is stopping: likewise
	deadline      *time.Timer
}

// turnsBuffer is more than the turns that the queue lets wait at one run, so that
// sending to it never blocks.
const turnsBuffer = 64

func newRun(m *Manager, row msg.Run, setup setup) *run {
	r := &run{m: m, row: row, setup: setup, turns: make(chan handover, turnsBuffer), shownThrough: map[int64]int64{}}
	for i := range r.ctl {
		r.ctl[i] = make(chan struct{}, 1)
	}
	return r
}

// control sends the run a signal, once if it is sent twice.
func (r *run) control(c control) {
	select {
	case r.ctl[c] <- struct{}{}:
	default:
	}
}

// pending receives the turns that are on their way to the run.
func (r *run) pending() (all []handover) {
	for {
		select {
		case h := <-r.turns:
			all = append(all, h)
		default:
			return all
		}
	}
}

// serve starts the process, sends it turn and all further turns, and returns the
// turns to queue again after its exit.
func (r *run) serve(turn *msg.Turn) []queue.Turn {
	r.deadline = time.NewTimer(r.timeout())
	defer r.deadline.Stop()
	if err := r.launch(); err != nil {
		return r.finalize(runtime.Exit{Err: err})
	}
	r.logStarted()
	r.sendPrompt(turn)
	return r.finalize(r.loop())
}

func (r *run) timeout() time.Duration { return time.Duration(r.setup.Timeouts.Timeout) }

func (r *run) launch() error {
	spec, err := r.spec()
	if err != nil {
		return err
	}
	proc, err := r.setup.runtime.Start(r.m.ctx, spec)
	if err != nil {
		return err
	}
	r.proc = proc
	failpoint.At(failpoint.Spawned)
	// The process has received nothing yet. From here on a restart can find it.
	err = r.m.persist(r.m.ctx, func(tx *store.Tx) error {
		return tx.RecordProcess(r.row.ID, proc.PID(), proc.PIDStart(), proc.Label())
	})
	if err != nil { // gated is being killed
		go proc.Stop(0)
		for range proc.Events() {
		}
	}
	return err
}

// spec is how the runtime starts the process.
func (r *run) spec() (s runtime.Spec, err error) {
	if r.setup.err != nil {
		return s, r.setup.err
	}
	agent := r.setup.Agent
	s = runtime.Spec{
		RunID: r.row.ID, Command: agent.Command, Image: agent.Image, Limits: r.setup.Limits,
		Env: r.setup.env, Redact: r.setup.redact,
	}
	if s.Dir, err = r.m.groupDir(r.row.Folder); err != nil {
		return s, err
	}
	if agent.Runtime != groupconfig.Process {
		if s.Hidden, err = r.m.hidden(r.row.Folder); err != nil {
			return s, err
		}
	}
	logs := filepath.Join(r.m.cfg.Logs, filepath.FromSlash(r.row.Folder))
	s.LogPath = filepath.Join(logs, fmt.Sprintf("run-%d.log", r.row.ID))
	return s, os.MkdirAll(logs, 0o700)
}

// loop serves the process until its exit.
func (r *run) loop() runtime.Exit {
	for {
		select {
		case h := <-r.turns:
			r.receive(h)
		case ev := <-r.proc.Events():
			switch {
			case ev.Exit != nil:
				return *ev.Exit
			case r.problem != "":
				// it has failed: further frames do not count
			case ev.Frame != nil:
				r.frame(*ev.Frame)
			case ev.Malformed != nil:
				r.fail("the agent wrote a malformed frame: " + ev.Malformed.Reason)
			}
		case <-r.deadline.C:
			if len(r.unanswered) > 0 {
				r.fail(fmt.Sprintf("the agent wrote no frame for %s", r.timeout()))
			}
		case <-r.ctl[ctlClose]:
			for _, h := range r.pending() { // sent before the signal
				r.receive(h)
			}
			r.drain()
		case <-r.ctl[ctlShutdown]:
			r.shuttingDown = true
			r.stop(r.m.cfg.Graces.EOF)
		case <-r.ctl[ctlInterrupt]:
			r.abort()
		}
	}
}

// drain lets the process answer its turns, without a limit of time.
func (r *run) drain() {
	if len(r.unanswered) == 0 {
		r.stop(r.m.cfg.Graces.EOF)
		return
	}
	r.stopping = true
	r.m.queue.Drain(r.row.ID)
	r.proc.CloseInput()
}

// abort interrupts the process.
func (r *run) abort() {
	if r.aborted {
		return
	}
	r.aborted = true
	r.send(agentproto.Interrupt{})
	r.stop(r.m.cfg.Graces.Fail)
}

// stop closes the process's input and, after grace, kills it.
func (r *run) stop(grace time.Duration) {
	r.stopping = true
	r.m.queue.Drain(r.row.ID)
	go r.proc.Stop(grace)
}

// fail ends the run as failed.
func (r *run) fail(problem string) {
	if r.aborted || r.shuttingDown {
		return
	}
	r.problem = r.setup.redact(problem)
	r.m.queue.Drain(r.row.ID)
	go r.proc.Stop(r.m.cfg.Graces.Fail)
}

// receive takes a turn; a queued one is first stored as offered to this run.
func (r *run) receive(h handover) {
	if h.queued == nil {
		r.logPiped(h.turn)
		r.sendPrompt(h.turn)
		return
	}
	if r.problem != "" || r.stopping {
		r.requeue(*h.queued)
		return
	}
	var turn *msg.Turn
	err := r.m.persist(r.m.ctx, func(tx *store.Tx) (err error) {
		if err = tx.OfferTurn(h.queued.ID, r.row.ID, r.m.now()); err != nil {
			return err
		}
		turn, err = tx.Turn(r.m.ctx, h.queued.ID)
		return err
	})
	if err != nil {
		r.requeue(*h.queued)
		return
	}
	r.logPiped(turn)
	r.sendPrompt(turn)
}

// requeue returns a turn that could not be offered to the queue, unless it was
// cancelled. A run that was closed without the queue's knowledge must not get the
// turn again.
func (r *run) requeue(t queue.Turn) {
	if live, err := r.m.st.RunIsLive(r.m.ctx, r.row.ID); err == nil && !live && !r.stopping {
		r.drain()
	}
	if row, err := r.m.st.Turn(r.m.ctx, t.ID); err != nil || row != nil && row.State == msg.TurnQueued {
		r.m.push(t)
	}
	r.free()
}

// free reports to the queue that the run has one turn less.
func (r *run) free() {
	r.m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Answered(r.row.ID, 1) })
}

// sendPrompt writes a turn's prompt to the agent.
func (r *run) sendPrompt(t *msg.Turn) {
	if r.problem != "" || r.stopping {
		return // finalize queues it again
	}
	p, err := r.prompt(t)
	if err != nil {
		return // gated is stopping
	}
	if r.unanswered = append(r.unanswered, t); len(r.unanswered) == 1 {
		r.deadline.Reset(r.timeout())
	}
	r.logPrompt(t, len(p.text))
	id := strconv.FormatInt(t.ID, 10)
	if r.started {
		failpoint.At(failpoint.Piping)
		r.send(agentproto.Message{TurnID: id, Prompt: p.text})
		if r.configChanged { // the next turn goes to a run with the new configuration
			r.drain()
		}
		return
	}
	r.started = true
	r.send(agentproto.Start{
		TurnID: id, Prompt: p.text, SessionID: p.session, GroupFolder: t.Folder, ChatJID: t.ChatJID,
		Topic: t.Topic, ThreadID: t.ThreadID, EngageTopic: t.Place, Surface: t.Surface, Ceiling: t.Ceiling,
	})
}

func (r *run) send(in agentproto.Input) {
	line, err := agentproto.Encode(in)
	if err == nil {
		err = r.proc.Send(line)
	}
	switch {
	case err == nil:
	case errors.Is(err, runtime.ErrClosed): // it has stopped reading, or has exited
		go r.proc.Stop(r.m.cfg.Graces.Fail)
	default:
		r.fail("cannot write to the agent: " + err.Error())
	}
}

// frame stores one answer of the agent.
func (r *run) frame(f agentproto.Frame) {
	// Only after the write: a slow database does not count as silence of the agent.
	defer func() { r.deadline.Reset(r.timeout()) }()
	t := r.addressee(f.TurnID)
	if t == nil {
		r.m.log.Warn("frame ignored: it names no turn of this run", "run", r.row.ID, "turn", f.TurnID,
			"folder", r.row.Folder, "chat", r.row.ChatJID)
		return
	}
	r.logFrame(t, &f)
	if f.Status == agentproto.StatusError {
		r.errorFrame(t, f.Error)
		return
	}
	reply := store.Reply{
		RunID: r.row.ID, TurnID: t.ID, Final: !f.More(), SessionID: f.NewSessionID, ObservedUpto: r.shownThrough[t.ID],
		Text:   r.setup.redact(agentproto.Strip(f.Result)),
		Sender: "agent:" + t.Folder, SenderName: r.shown.assistant,
	}
	failpoint.At(failpoint.Framed)
	err := r.m.persist(r.m.ctx, func(tx *store.Tx) error { return tx.AnswerTurn(reply, r.m.now()) })
	switch {
	case errors.Is(err, store.ErrStale):
		r.m.log.Info("frame discarded: its turn was cancelled", "run", r.row.ID, "turn", t.ID)
	case err != nil:
		return // gated is stopping: the next one repeats the turn
	default:
		r.logAnswer(t, reply.Text)
	}
	if reply.Final {
		r.done(t)
	}
}

// errorFrame ends the run as failed, unless the turn was cancelled: then the
// error does not matter.
func (r *run) errorFrame(t *msg.Turn, problem string) {
	if now, err := r.m.st.Turn(r.m.ctx, t.ID); err == nil && now != nil && now.State == msg.TurnCancelled {
		r.m.log.Info("error frame discarded: its turn was cancelled", "run", r.row.ID, "turn", t.ID)
		r.done(t)
		return
	}
	r.fail(cmp.Or(problem, "the agent reported an error without a description"))
}

// addressee returns the turn that a frame answers: the one it names, else the
// oldest unanswered, else the last answered one; nil if there is none.
func (r *run) addressee(turnID string) *msg.Turn {
	if turnID == "" {
		if len(r.unanswered) > 0 {
			return r.unanswered[0]
		}
		return r.last
	}
	id, err := strconv.ParseInt(turnID, 10, 64)
	if err != nil {
		return nil
	}
	if i := slices.IndexFunc(r.unanswered, func(t *msg.Turn) bool { return t.ID == id }); i >= 0 {
		return r.unanswered[i]
	}
	if _, ours := r.shownThrough[id]; !ours {
		return nil
	}
	return &msg.Turn{ID: id, RunID: r.row.ID, Folder: r.row.Folder}
}

// done removes an answered turn from the run.
func (r *run) done(t *msg.Turn) {
	i := slices.IndexFunc(r.unanswered, func(u *msg.Turn) bool { return u.ID == t.ID })
	if i < 0 {
		return
	}
	r.unanswered = slices.Delete(r.unanswered, i, i+1)
	r.last, r.answered = t, true
	r.m.meter.answered(t, r.m.cfg.Now())
	r.free()
	if r.stopping && len(r.unanswered) == 0 {
		r.stop(r.m.cfg.Graces.EOF)
	}
}
