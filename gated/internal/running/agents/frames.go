package agents

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// frame stores one answer of the agent. Frames that are not stored do not count as a
// sign of life: an agent that writes nothing else is stopped in the end.
func (r *run) frame(f agentproto.Frame) {
	turns := r.addressees(f)
	if len(turns) == 0 {
		r.ignore(f)
		return
	}
	t := turns[0]
	r.logFrame(t, &f)
	r.guard(t, func() {
		if f.Status == agentproto.StatusError && agentproto.Strip(f.Result) == "" {
			r.errorFrame(t, f)
			return
		}
		text, ok := r.admit(t, f)
		if !ok {
			r.discard(t)
			return
		}
		// Only after the write: a slow database does not count as silence of the agent.
		defer func() { r.deadline.Reset(r.timeout()) }()
		r.answer(turns, f, text)
	})
}

// ignore handles a frame for no turn of the run. The first one is logged.
func (r *run) ignore(f agentproto.Frame) {
	if r.ignored++; r.ignored == 1 {
		r.m.log.Warn("frame ignored: it names no turn of this run; further ones are not logged", "run", r.row.ID,
			"turn", agentproto.Truncate(strings.Join(f.Turns(), ","), 40), "folder", r.row.Folder, "chat", r.row.ChatJID)
	}
}

// answer stores a frame with an answer, also one that says that the answer is only a
// part. In the same commit the run takes its next turn. turns are those that it is for, the
// one under way first; text is its result.
func (r *run) answer(turns []*msg.Turn, f agentproto.Frame, text string) {
	t := turns[0]
	text, files := r.attachLong(t, text)
	reply := store.Reply{
		Files: files, RunID: r.row.ID, Agent: r.row.Agent, TurnID: t.ID, Final: ends(f), SessionID: r.session(t, f), ObservedUpto: r.shownThrough[t.ID],
		Text: text, Sender: msg.AgentSender(t.Folder), SenderName: r.current.AssistantName, Problem: r.lost(t),
	}
	for _, folded := range turns[1:] {
		reply.With = append(reply.With, store.Folded{TurnID: folded.ID, ObservedUpto: r.shownThrough[folded.ID]})
	}
	if f.Status == agentproto.StatusError {
		reply.Kind = msg.ErrorKind(f.ErrorKind())
		reply.Problem = r.problem(cmp.Or(f.Error, noDescription))
		r.m.log.Warn("agent failed after an answer", "run", r.row.ID, "turn", t.ID, "reason", reply.Problem)
	}
	var next queue.Turn
	var reserved bool
	if reply.Final && !r.stopping && !r.configChanged && r.isOpen(t.ID) && len(r.unanswered) == len(turns) {
		next, reserved = r.m.queue.Next(r.row.ID, len(turns))
	}
	failpoint.At(failpoint.Framed)
	turn, err := r.store(t, reply, next.ID)
	switch {
	case errors.Is(err, store.ErrStale):
		r.m.discard(r.m.ctx, files)
		r.m.log.Info("frame discarded: its turn was cancelled", "run", r.row.ID, "turn", t.ID)
	case errors.Is(err, store.ErrPanic):
		r.m.discard(r.m.ctx, files)
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
		r.took(turn)
	} else if reply.Final {
		r.report()
	}
}

// store stores an answer, and gives the run the next turn, 0 for none. It returns
// the next turn if the run has it.
func (r *run) store(t *msg.Turn, reply store.Reply, next int64) (taken *msg.Turn, err error) {
	var lanes []string
	var cleared bool
	err = r.m.persist(r.m.ctx, func(tx *store.Tx) (err error) {
		taken = nil
		now := r.m.now()
		if err = r.putProgress(tx); err != nil {
			return err
		}
		if err = tx.AnswerTurn(reply, now); err != nil {
			return err
		}
		if reply.Final && reply.Kind == "" {
			if cleared, lanes, err = tx.ClearFailures(t.Folder); err != nil {
				return err
			}
		}
		if next == 0 {
			return nil
		}
		err = tx.TakeTurn(next, r.row.ID, now)
		if err == nil {
			taken, err = tx.Turn(r.m.ctx, next)
		}
		if errors.Is(err, store.ErrStale) { // the answer is stored all the same
			taken, err = nil, nil
		}
		return err
	})
	if err == nil {
		r.progressStored()
		r.answeredInPart(t.ID)
	}
	if err == nil && cleared {
		r.m.problems.groupWorks(t.Folder)
		r.m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Resume(t.Folder, lanes...) })
	}
	return taken, err
}

const noDescription = "the agent reported an error without a description"

// errorFrame ends the run as failed, unless the turn was cancelled: then the
// error does not matter.
func (r *run) errorFrame(t *msg.Turn, f agentproto.Frame) {
	if now, err := r.m.st.Turn(r.m.ctx, t.ID); err == nil && now != nil && now.State == msg.TurnCancelled {
		r.m.log.Info("error frame discarded: its turn was cancelled", "run", r.row.ID, "turn", t.ID)
		r.done(t)
		r.report()
		return
	}
	r.fail(failure{
		problem: cmp.Or(f.Error, noDescription), kind: msg.ErrorKind(f.ErrorKind()), turn: t.ID, delay: f.RetryDelay(),
		session: r.session(t, f),
	})
}

// malformed ends the run as failed by the turn that the frame named.
func (r *run) malformed(bad *agentproto.Malformed) {
	var turn int64
	if t := r.addressee(bad.TurnID); t != nil {
		turn = t.ID
	}
	r.fail(failure{problem: "the agent wrote a malformed frame: " + bad.Reason, turn: turn})
}

// addressees returns the turns that a frame answers, oldest first: of several that it names those that are
// unanswered, or the last one if all are answered; else its addressee; none if it names no turn of the run.
func (r *run) addressees(f agentproto.Frame) []*msg.Turn {
	var open []*msg.Turn
	for _, t := range r.unanswered {
		if slices.Contains(f.TurnIDs, strconv.FormatInt(t.ID, 10)) {
			open = append(open, t)
		}
	}
	if len(open) > 0 {
		return open
	}
	named := f.TurnID
	if n := len(f.TurnIDs); n > 0 {
		named = f.TurnIDs[n-1]
	}
	if t := r.addressee(named); t != nil {
		return []*msg.Turn{t}
	}
	return nil
}

// addressee returns the turn that a frame or an event is about: the one it names, else the
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

// done removes turns from the run that were answered together, the one that has the answer first.
func (r *run) done(turns ...*msg.Turn) {
	before := len(r.unanswered)
	for _, t := range turns {
		i := slices.IndexFunc(r.unanswered, func(u *msg.Turn) bool { return u.ID == t.ID })
		if i < 0 {
			continue
		}
		r.unanswered = slices.Delete(r.unanswered, i, i+1)
		r.forgetProgress(t.ID)
		r.m.meter.answered(r.row.Runtime, t, r.m.cfg.Now())
	}
	if len(r.unanswered) == before {
		return
	}
	r.setTurnAtWork()
	r.last, r.answered = turns[0], true
	if len(r.unanswered) > 0 {
		r.begins(r.unanswered[0])
	}
	if len(r.asks)+len(r.waiting) > 0 { // its questions have ended with it
		r.checkAsks()
	}
	if r.stopping && len(r.unanswered) == 0 {
		go r.proc.Stop(r.m.cfg.Graces.EOF)
	}
	r.endDeaf()
}
