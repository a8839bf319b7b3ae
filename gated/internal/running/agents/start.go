package agents

import (
	"errors"
	"fmt"
	"runtime/debug"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// errNoSlot means that enough runs are busy by now.
var errNoSlot = fmt.Errorf("no slot is free: %w", store.ErrStale)

// probingError means that the group's turns fail alike, and the next one is not to be
// tried before a time, in unix ms.
type probingError struct{ until int64 }

func (e *probingError) Error() string { return "the group's turns fail alike" }

// start opens a run for a queued turn and serves it until its end.
func (m *Manager) start(t queue.Turn) {
	r, turn, err := m.open(t)
	if err != nil {
		m.notStarted(t, err)
		return
	}
	m.live.add(r)
	m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Started(t, r.row.ID) })
	r.inbox.control(ctlReread) // for changes that were stored before the run was live
	r.serveGuarded(turn)
	m.live.remove(r.row.ID)
	notify(m.undos.found)
	m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Exited(r.row.ID) })
}

// serveGuarded serves a run. A panic ends the run, and fails its oldest turn.
func (r *run) serveGuarded(turn *msg.Turn) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		err := panicError(cause)
		r.env.log.Error("panic while serving run", "run", r.row.ID, "folder", r.row.Folder, "err", err)
		if r.agent.proc != nil {
			go r.agent.proc.Stop(r.env.cfg.Graces.Fail)
			for range r.agent.proc.Events() {
			}
		}
		r.env.guard("ending what a turn changed", func() { r.record(0) })
		if err := r.abandon(err); err != nil {
			r.env.log.Error("run not finalized; the next start does it", "run", r.row.ID, "err", err)
		}
	}()
	r.serve(turn)
}

func (m *Manager) notStarted(t queue.Turn, err error) {
	until := m.env.now() + tick.Milliseconds() // the reason may last
	var probing *probingError
	switch {
	case errors.As(err, &probing):
		until = probing.until
	case errors.Is(err, errNoSlot):
		until = m.env.now() + 1 // the next tick
	case errors.Is(err, errOverBudget):
		until = 0 // the turn has ended
	case errors.Is(err, store.ErrStale):
	case errors.Is(err, store.ErrPanic):
		m.env.failPanicked(t.ID, err)
	default:
		m.env.log.Warn("run not started; retrying", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "err", err)
	}
	m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.StartFailed(t, until) })
}

// open stores a new run for a turn.
func (m *Manager) open(t queue.Turn) (r *run, turn *msg.Turn, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicError(cause)
		}
	}()
	setup, err := m.groups.setup(t.Folder)
	if err != nil {
		return nil, nil, err
	}
	if setup.Budget != (groupconfig.Budget{}) {
		if turn, err = m.env.st.Turn(m.env.ctx, t.ID); err != nil {
			return nil, nil, err
		}
		if turn != nil && turn.State == msg.TurnQueued && m.budgets.refuse(turn, setup.Budget) {
			return nil, nil, errOverBudget
		}
	}
	row := msg.Run{Folder: t.Folder, Topic: t.Topic, ChatJID: t.ChatJID, ThreadID: t.ThreadID,
		Runtime: string(setup.Agent.Runtime), Agent: setup.Agent.Name}
	var probe int64
	scope := store.Scope{t.ChatJID, t.Folder, m.env.slots()}
	err = m.env.persistIn(m.env.ctx, scope, func(tx *store.Tx) (err error) {
		if probe, err = m.env.mayStart(tx, t); err != nil || probe != 0 {
			return err
		}
		row.StartedAt = m.env.now()
		if err = rows.StartRun(tx, &row, t.ID); err != nil {
			return err
		}
		if turn, err = tx.Turn(m.env.ctx, t.ID); err != nil {
			return err
		}
		r = newRun(m, row, setup)
		return r.prompts.announceFirst(tx, turn)
	})
	if err == nil && probe != 0 {
		err = &probingError{probe}
	}
	return r, turn, err
}

// mayStart returns errNoSlot if enough runs are busy. If the turn's group is failing
// and tries its next turn later, the turn waits until then: mayStart returns the time.
func (e *env) mayStart(tx *store.Tx, t queue.Turn) (probe int64, err error) {
	free, err := rows.FreeSlot(tx, e.cfg.MaxAgents)
	if err == nil && !free {
		err = errNoSlot
	}
	if err != nil {
		return 0, err
	}
	at, err := rows.ProbeAt(e.ctx, tx.Reader, t.Folder)
	now, interval := e.now(), e.cfg.Probe.Milliseconds()
	switch {
	case err != nil || at == 0:
		return 0, err
	case at > now && at <= now+interval: // else the clock was set back
		turn, err := tx.Turn(e.ctx, t.ID)
		if err != nil || turn == nil {
			return at, err
		}
		return at, rows.RequeueTurn(tx, t.ID, rows.Requeue{
			WaitsFor: msg.WaitsProbe, NotBefore: at, Kind: turn.ErrorKind, Problem: turn.Error,
		})
	}
	return 0, rows.SetProbe(tx, t.Folder, now+interval)
}

// panicError is the error of a recovered panic.
func panicError(cause any) error {
	return fmt.Errorf("%w: %v\n%s", store.ErrPanic, cause, debug.Stack())
}

// failPanicked ends a turn whose handling has panicked, with the stack in the row.
func (e *env) failPanicked(id int64, problem error) {
	e.log.Error("panic while handling turn", "turn", id, "err", problem)
	err := e.persist(e.ctx, func(tx *store.Tx) error {
		t, err := tx.Turn(e.ctx, id)
		if err != nil || t == nil || t.EndedAt != 0 {
			return err
		}
		now := e.now()
		t.ErrorKind = msg.ErrorPermanent
		if err := rows.FinishTurn(tx, t, msg.TurnFailed, msg.ReasonAgentError, problem.Error(), now); err != nil {
			return err
		}
		return e.putFailure(tx, t, noticeFailed(t.ID, "something went wrong in the gateway"), now)
	})
	if err != nil {
		e.log.Error("turn not ended after a panic", "turn", id, "err", err)
	}
}
