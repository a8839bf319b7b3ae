package agents

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// probeInterval is how often a group whose turns fail alike tries one.
const probeInterval = time.Minute

// errNoSlot means that enough runs are busy by now.
var errNoSlot = fmt.Errorf("no slot is free: %w", store.ErrStale)

// probingError means that the group's turns fail alike, and the next one is not to be
// tried before a time, in unix ms.
type probingError struct{ until int64 }

func (e *probingError) Error() string { return "the group's turns fail alike" }

// start opens a run for a queued turn and serves it until its end.
func (m *Manager) start(t queue.Turn) {
	defer m.wg.Done()
	r, turn, err := m.open(t)
	if err != nil {
		m.notStarted(t, err)
		return
	}
	m.register(r, t)
	r.control(ctlReread) // for what was stored about the run before it was registered
	r.serveGuarded(turn)
	m.unregister(r)
}

// serveGuarded serves a run. A panic ends the run, and fails its oldest turn.
func (r *run) serveGuarded(turn *msg.Turn) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		err := panicError(cause)
		r.m.log.Error("panic while serving run", "run", r.row.ID, "folder", r.row.Folder, "err", err)
		if r.proc != nil {
			go r.proc.Stop(r.m.cfg.Graces.Fail)
			for range r.proc.Events() {
			}
		}
		if err := r.abandon(err); err != nil {
			r.m.log.Error("run not finalized; the next start does it", "run", r.row.ID, "err", err)
		}
	}()
	r.serve(turn)
}

func (m *Manager) notStarted(t queue.Turn, err error) {
	until := m.now() + tick.Milliseconds() // the reason may last
	var probing *probingError
	switch {
	case errors.As(err, &probing):
		until = probing.until
	case errors.Is(err, errNoSlot):
		until = m.now() + 1 // the next tick
	case errors.Is(err, errOverBudget):
		until = 0 // the turn has ended
	case errors.Is(err, store.ErrStale):
	case errors.Is(err, store.ErrPanic):
		m.failPanicked(t.ID, err)
	default:
		m.log.Warn("run not started; retrying", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "err", err)
	}
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.StartFailed(t, until) })
}

// open stores a new run for a turn.
func (m *Manager) open(t queue.Turn) (r *run, turn *msg.Turn, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicError(cause)
		}
	}()
	setup, err := m.setup(t.Folder)
	if err != nil {
		return nil, nil, err
	}
	if setup.Budget != (groupconfig.Budget{}) {
		if turn, err = m.st.Turn(m.ctx, t.ID); err != nil {
			return nil, nil, err
		}
		if turn != nil && turn.State == msg.TurnQueued && m.refuseOver(turn) {
			return nil, nil, errOverBudget
		}
	}
	row := msg.Run{Folder: t.Folder, Topic: t.Topic, ChatJID: t.ChatJID, ThreadID: t.ThreadID, Runtime: string(setup.Agent.Runtime), Agent: setup.Agent.Name}
	var probe int64
	err = m.persist(m.ctx, func(tx *store.Tx) (err error) {
		if probe, err = m.mayStart(tx, t); err != nil || probe != 0 {
			return err
		}
		row.StartedAt = m.now()
		if err = tx.StartRun(&row, t.ID); err != nil {
			return err
		}
		if turn, err = tx.Turn(m.ctx, t.ID); err != nil {
			return err
		}
		r = newRun(m, row, setup)
		return r.announceFirst(tx, turn)
	})
	if err == nil && probe != 0 {
		err = &probingError{probe}
	}
	return r, turn, err
}

// mayStart returns errNoSlot if enough runs are busy. If the turn's group is failing
// and tries its next turn later, the turn waits until then: mayStart returns the time.
func (m *Manager) mayStart(tx *store.Tx, t queue.Turn) (probe int64, err error) {
	free, err := tx.FreeSlot(m.cfg.MaxAgents)
	if err == nil && !free {
		err = errNoSlot
	}
	if err != nil {
		return 0, err
	}
	at, err := tx.ProbeAt(m.ctx, t.Folder)
	now := m.now()
	switch {
	case err != nil || at == 0:
		return 0, err
	case at > now && at <= now+m.probeInterval(): // else the clock was set back
		turn, err := tx.Turn(m.ctx, t.ID)
		if err != nil || turn == nil {
			return at, err
		}
		return at, tx.RequeueTurn(t.ID, store.Requeue{
			WaitsFor: msg.WaitsProbe, NotBefore: at, Kind: turn.ErrorKind, Problem: turn.Error,
		})
	}
	return 0, tx.SetProbe(t.Folder, now+m.probeInterval())
}

func (m *Manager) probeInterval() int64 { return cmp.Or(m.cfg.Probe, probeInterval).Milliseconds() }

// register makes a stored run known to the queue and to Stop, Cancel and Drain.
func (m *Manager) register(r *run, t queue.Turn) {
	m.mu.Lock()
	m.runs[r.row.ID] = r
	if m.closing {
		r.control(ctlShutdown)
	}
	m.mu.Unlock()
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Started(t, r.row.ID) })
}

// unregister removes a run that has ended.
func (m *Manager) unregister(r *run) {
	m.mu.Lock()
	delete(m.runs, r.row.ID)
	m.mu.Unlock()
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Exited(r.row.ID) })
}

// panicError is the error of a recovered panic.
func panicError(cause any) error {
	return fmt.Errorf("%w: %v\n%s", store.ErrPanic, cause, debug.Stack())
}

// failPanicked ends a turn whose handling has panicked, with the stack in the row.
func (m *Manager) failPanicked(id int64, problem error) {
	m.log.Error("panic while handling turn", "turn", id, "err", problem)
	err := m.persist(m.ctx, func(tx *store.Tx) error {
		t, err := tx.Turn(m.ctx, id)
		if err != nil || t == nil || t.EndedAt != 0 {
			return err
		}
		now := m.now()
		t.ErrorKind = msg.ErrorPermanent
		if err := tx.FinishTurn(t, msg.TurnFailed, msg.ReasonAgentError, problem.Error(), now); err != nil {
			return err
		}
		return tx.PutNotice(t, noticeFailed(t.ID, "something went wrong in the gateway"), now)
	})
	if err != nil {
		m.log.Error("turn not ended after a panic", "turn", id, "err", err)
	}
}
