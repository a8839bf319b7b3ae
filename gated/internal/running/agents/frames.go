package agents

import (
	"cmp"
	"errors"
	"log/slog"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// frame stores one answer of the agent. Frames that are not stored do not count as a
// sign of life: an agent that writes nothing else is stopped in the end.
func (r *run) frame(f agentproto.Frame) {
	turns := r.turns.addressees(f)
	if len(turns) == 0 {
		r.outputs.ignore(f)
		return
	}
	t := turns[0]
	r.env.log.Debug("frame received", "turn", t.ID, "run", r.row.ID, "bytes", len(f.Result)+len(f.Error),
		"final", !f.More())
	r.guard(t, func() {
		if f.Status == agentproto.StatusError && agentproto.Strip(f.Result) == "" {
			r.errorFrame(t, f)
			return
		}
		text, ok := r.outputs.admit(t, f, r.turns.has(t.ID))
		if !ok {
			if err := r.outputs.discard(t); errors.Is(err, store.ErrPanic) {
				r.costTurn(t, err)
			}
			return
		}
		// Only after the write: a slow database does not count as silence of the agent.
		defer r.agent.resetDeadline()
		r.answer(turns, f, text)
	})
}

// answer stores a frame with an answer, even one that says that the answer is only a
// part. In the same commit the run claims its next turn. turns are those that it is for, the
// one under way first; text is its result.
func (r *run) answer(turns []*msg.Turn, f agentproto.Frame, text string) {
	t := turns[0]
	var files []msg.Attachment
	if r.settings.now.Long == groupconfig.LongFile && text != "" {
		text, files = r.m.files.attachLong(t, text, r.runInfo)
	}
	reply := rows.Reply{
		Files: files, RunID: r.row.ID, Agent: r.row.Agent, TurnID: t.ID, Final: ends(f),
		SessionID: r.outputs.session(t, f), ObservedUpto: r.turns.prompted[t.ID],
		Text: text, Sender: msg.AgentSender(t.Folder), SenderName: r.settings.now.AssistantName,
		Problem: r.outputs.lost(t),
	}
	for _, folded := range turns[1:] {
		reply.With = append(reply.With, rows.Folded{TurnID: folded.ID, ObservedUpto: r.turns.prompted[folded.ID]})
	}
	if f.Status == agentproto.StatusError {
		reply.Kind = msg.ErrorKind(f.ErrorKind())
		reply.Problem = r.setup.problem(cmp.Or(f.Error, noDescription))
		r.env.log.Warn("agent failed after an answer", "run", r.row.ID, "turn", t.ID, "reason", reply.Problem)
	}
	var next queue.Turn
	var reserved bool
	if reply.Final && !r.agent.ending() && !r.settings.changed && r.turns.has(t.ID) &&
		len(r.turns.unanswered) == len(turns) {
		next, reserved = r.m.sched.queue.Next(r.row.ID, len(turns))
	}
	failpoint.At(failpoint.Framed)
	turn, err := r.store(t, reply, next.ID)
	switch {
	case errors.Is(err, store.ErrStale):
		r.m.files.discard(r.env.ctx, files)
		r.env.log.Info("frame discarded: its turn was cancelled", "run", r.row.ID, "turn", t.ID)
	case errors.Is(err, store.ErrPanic):
		r.m.files.discard(r.env.ctx, files)
		r.costTurn(t, err)
		return
	case err != nil:
		return // gated is stopping: the next one repeats the turn
	default:
		r.logAnswer(t, reply.Text)
	}
	if reply.Final {
		r.done(turns...)
	}
	if reserved {
		r.claimed(turn)
	} else if reply.Final {
		r.report()
	}
}

// logAnswer names the row that a frame became, 0 for a silence and for an answer that went back to another group as an
// inbound row.
func (r *run) logAnswer(t *msg.Turn, text string) {
	if !r.env.log.Enabled(r.env.ctx, slog.LevelDebug) {
		return
	}
	var row int64
	if text != "" {
		if replies, err := factrows.TurnReplies(r.env.ctx, r.env.st.Reader, t.ID); err == nil && len(replies) > 0 {
			row = replies[len(replies)-1].ID
		}
	}
	r.env.log.Debug("answer stored", "row", row, "turn", t.ID, "run", r.row.ID)
}

// store stores an answer, and gives the run the next turn, 0 for none. It returns
// the next turn if the run has it.
func (r *run) store(t *msg.Turn, reply rows.Reply, next int64) (claimed *msg.Turn, err error) {
	var lanes []string
	var cleared bool
	err = r.env.persistIn(r.env.ctx, r.scope(), func(tx *store.Tx) (err error) {
		claimed, cleared = nil, false
		now := r.env.now()
		if err = r.progress.put(tx); err != nil {
			return err
		}
		failing, err := rows.AnswerTurn(tx, reply, now)
		if err == nil && failing && reply.Kind == "" {
			cleared, lanes, err = rows.ClearFailures(tx, t.Folder)
		}
		if err != nil || next == 0 {
			return err
		}
		err = rows.TakeTurn(tx, next, r.row.ID, now)
		if err == nil {
			claimed, err = tx.Turn(r.env.ctx, next)
		}
		if errors.Is(err, store.ErrStale) { // the answer is stored all the same
			claimed, err = nil, nil
		}
		return err
	})
	if err == nil {
		r.progress.stored()
		r.progress.textSent(t.ID)
	}
	if err == nil && cleared {
		r.m.problems.groupWorks(t.Folder)
		r.m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Resume(t.Folder, lanes...) })
	}
	return claimed, err
}

const noDescription = "the agent reported an error without a description"

// errorFrame ends the run as failed, unless the turn was cancelled: then the
// error does not matter.
func (r *run) errorFrame(t *msg.Turn, f agentproto.Frame) {
	if now, err := r.env.st.Turn(r.env.ctx, t.ID); err == nil && now != nil && now.State == msg.TurnCancelled {
		r.env.log.Info("error frame discarded: its turn was cancelled", "run", r.row.ID, "turn", t.ID)
		r.done(t)
		r.report()
		return
	}
	r.agent.fail(failure{
		problem: cmp.Or(f.Error, noDescription), kind: msg.ErrorKind(f.ErrorKind()), turn: t.ID, delay: f.RetryDelay(),
		session: r.outputs.session(t, f),
	})
}

// malformed ends the run as failed by the turn that the frame named.
func (r *run) malformed(bad *agentproto.Malformed) {
	var turn int64
	if t := r.turns.addressee(bad.TurnID); t != nil {
		turn = t.ID
	}
	r.agent.fail(failure{problem: "the agent wrote a malformed frame: " + bad.Reason, turn: turn})
}

// done removes turns from the run that were answered together, the one that has the answer first.
func (r *run) done(turns ...*msg.Turn) {
	removed := r.turns.remove(turns...)
	if len(removed) == 0 {
		return
	}
	for _, t := range removed {
		r.progress.forget(t.ID)
		since(r.m.meter.turns, r.row.Runtime, t, r.env.cfg.Now())
	}
	r.agent.setTurns(r.turns.unanswered)
	if len(r.turns.unanswered) == 0 {
		r.record(0)
	} else {
		r.record(r.turns.unanswered[0].ID)
		r.m.marks.unmark(r.turns.unanswered[0], r.row.ID)
		r.interruptCancelled()
	}
	if r.asks.any() { // its questions have ended with it
		r.checkAsks()
	}
	if r.agent.ending() && len(r.turns.unanswered) == 0 {
		go r.agent.proc.Stop(r.env.cfg.Graces.EOF)
	}
	r.endDeaf()
}
