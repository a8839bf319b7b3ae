package agents

import (
	"errors"
	"fmt"
	"strings"

	"arizuko/gated/internal/queue"
	"arizuko/gated/internal/runtime"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// leftovers is what remains of a run after its exit.
type leftovers struct {
	problem string       // why the run failed, "" if it did not
	queued  []queue.Turn // turns to queue again
	failed  []*msg.Turn
}

// finalize stores what becomes of the run's unanswered turns and returns those to
// queue again.
func (r *run) finalize(exit runtime.Exit) []queue.Turn {
	failpoint.At(failpoint.Exited)
	if exit.Err != nil {
		r.permanent = errors.As(exit.Err, new(*runtime.SetupError))
		r.m.log.Error("run failed", "run", r.row.ID, "folder", r.row.Folder, "runtime", r.row.Runtime,
			"err", r.setup.redact(exit.Err.Error()))
	}
	var left leftovers
	err := r.m.persist(r.m.ctx, func(tx *store.Tx) (err error) {
		left, err = r.finalizeTurns(tx, exit, r.m.now())
		return err
	})
	if err != nil { // gated is being killed
		r.m.log.Error("run not finalized; the next start does it", "run", r.row.ID, "err", err)
		return nil
	}
	r.logEnded(left, exit.Err != nil)
	return left.queued
}

func (r *run) finalizeTurns(tx *store.Tx, exit runtime.Exit, now int64) (left leftovers, err error) {
	turns, err := tx.RunTurns(r.m.ctx, r.row.ID)
	if err != nil {
		return left, err
	}
	left.problem = r.failureOf(exit, len(turns))
	if left.problem != "" && r.started {
		if err := tx.EvictSession(r.row.Folder, r.row.Topic); err != nil {
			return left, err
		}
	}
	for i, t := range turns {
		requeued, err := r.finalizeTurn(tx, t, left.problem, i == 0, now)
		if err != nil {
			return left, err
		}
		if requeued != nil {
			left.queued = append(left.queued, *requeued)
		} else if t.Frames == 0 {
			left.failed = append(left.failed, t)
		}
	}
	return left, tx.EndRun(r.row.ID, left.problem, now)
}

// failureOf returns why the run counts as failed, "" if it does not: a run that
// was stopped, that has no open turns, or that exited with 0 after an answer, as
// agents for one prompt do.
func (r *run) failureOf(exit runtime.Exit, left int) string {
	switch {
	case r.problem != "":
		return r.problem
	case r.stopping, left == 0, r.answered && exit.Code == 0 && exit.Signal == 0:
		return ""
	}
	if exit.Err != nil {
		return r.setup.redact("cannot run the agent: " + exit.Err.Error())
	}
	problem := "the agent ended without an answer: " + exit.Reason()
	if tail := strings.TrimSpace(exit.StderrTail); tail != "" {
		problem += ": " + tail[strings.LastIndexByte(tail, '\n')+1:]
	}
	return r.setup.redact(problem)
}

func (r *run) finalizeTurn(tx *store.Tx, t *msg.Turn, problem string, oldest bool, now int64) (*queue.Turn, error) {
	charged := oldest && problem != ""
	switch {
	case t.Frames > 0 && problem != "":
		return nil, tx.FinishTurn(t, msg.TurnDone, msg.ReasonPartial, problem, now)
	case t.Frames > 0:
		return nil, tx.FinishTurn(t, msg.TurnDone, msg.ReasonInterrupted, "", now)
	case charged && (r.permanent || t.Attempts+1 >= r.m.cfg.Attempts):
		if err := tx.FinishTurn(t, msg.TurnFailed, msg.ReasonAgentError, problem, now); err != nil {
			return nil, err
		}
		return nil, tx.PutNotice(t, r.failureNotice(t), now)
	}
	requeued := queue.TurnOf(t)
	if charged {
		t.Attempts++
		requeued.Backoff = r.m.cfg.Backoff(t.Attempts)
		t.NotBefore = now + requeued.Backoff.Milliseconds()
	}
	return &requeued, tx.RequeueTurn(t.ID, charged, problem, t.NotBefore)
}

// failureNotice is the one message to the chat about a failed turn. The reason is
// for operators alone: it may hold what users must not see.
func (r *run) failureNotice(t *msg.Turn) string {
	why := fmt.Sprintf("the agent failed %d times", r.m.cfg.Attempts)
	if r.permanent {
		why = "the agent is not set up correctly"
	}
	return fmt.Sprintf("Sorry, I could not answer this: %s. Operators: turn %d has the reason and can be retried.", why, t.ID)
}
