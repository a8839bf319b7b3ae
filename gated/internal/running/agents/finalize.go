package agents

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// apologyInterval is how long a place is not notified again, in ms, of turns that
	// fail in the same way.
	apologyInterval = 3_600_000
	// maxQuietWait is how long a turn waits for the machine before its chat is notified,
	// in ms.
	maxQuietWait = 120_000
	// maxProblem bounds the part of a failure that is compared with others, in bytes.
	maxProblem = 200
)

// leftovers are the unanswered turns of a run after its exit. The run's goroutine owns them.
type leftovers struct {
	*runInfo
	problems *problems
	failure  failure
	queued   []*msg.Turn // turns that are queued again
	failed   []*msg.Turn
	alike    bool // the group's turns fail alike
}

// finalize stores the fate of the run's unanswered turns.
func (r *run) finalize(exit runtime.Exit) {
	r.agent.access.Close()
	failpoint.At(failpoint.Exited)
	if exit.Err != nil {
		r.env.log.Error("run failed", "run", r.row.ID, "folder", r.row.Folder, "runtime", r.row.Runtime,
			"err", r.setup.redact(exit.Err.Error()))
	}
	left := &leftovers{runInfo: r.runInfo} // it stays so when finalizeTurns panics
	err := r.env.persist(r.env.ctx, func(tx *store.Tx) (err error) {
		left, err = r.finalizeTurns(tx, exit, r.env.now())
		return err
	})
	if errors.Is(err, store.ErrPanic) {
		err = r.abandon(err)
	}
	if err != nil { // gated is being killed
		r.env.log.Error("run not finalized; the next start does it", "run", r.row.ID, "err", err)
		return
	}
	r.m.marks.watch(left.queued...) // they wait again
	if left.failure.kind == msg.ErrorMachine {
		r.m.problems.machineFailed(r.row.Runtime, left.failure.problem, r.env.now())
	}
	if left.alike {
		r.m.problems.groupFails(r.row.Folder, left.failure.problem)
	}
	r.m.meter.ended(r.row.Runtime, left.failure, exit)
	left.log(exit.Err != nil)
}

// log names the failure unless that is logged, and the turns that failed with it or are queued again.
func (l *leftovers) log(failureLogged bool) {
	log := l.env.log
	if l.failure.problem != "" && !failureLogged {
		log.Warn("run failed", "run", l.row.ID, "folder", l.row.Folder, "reason", l.failure.problem)
	}
	for _, t := range l.failed {
		log.Warn("turn failed", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "reason", l.failure.problem)
	}
	for _, t := range l.queued {
		log.Debug("turn requeued", "turn", t.ID, "run", l.row.ID, "folder", t.Folder, "wait", l.env.waitOf(t))
	}
	log.Debug("run ended", "run", l.row.ID, "folder", l.row.Folder, "chat", l.row.ChatJID,
		"took", time.Duration(l.env.now()-l.row.StartedAt)*time.Millisecond)
}

// abandon ends a run whose turns could not be finalized for a panic: the oldest is
// failed, since it may be the cause, and the others are queued again.
func (r *run) abandon(cause error) error {
	turns, err := rows.RunTurns(r.env.ctx, r.env.st.Reader, r.row.ID)
	if err == nil && len(turns) > 0 {
		r.env.failPanicked(turns[0].ID, cause)
	}
	return errors.Join(err, r.env.persist(r.env.ctx, func(tx *store.Tx) error {
		return r.env.endRun(tx, r.row.ID, cause.Error())
	}))
}

func (r *run) finalizeTurns(tx *store.Tx, exit runtime.Exit, now int64) (left *leftovers, err error) {
	left = &leftovers{runInfo: r.runInfo, problems: r.m.problems}
	turns, err := rows.RunTurns(r.env.ctx, tx.Reader, r.row.ID)
	if err != nil {
		return left, err
	}
	if err := r.progress.put(tx); err != nil {
		return left, err
	}
	left.failure = r.failureOf(exit, turns)
	if r.prompts.started {
		if err := left.endSession(tx, turns, now); err != nil {
			return left, err
		}
	}
	for _, t := range turns {
		if err := left.finalizeTurn(tx, t, now); err != nil {
			return left, err
		}
	}
	return left, rows.EndRun(tx, r.row.ID, left.failure.problem, now)
}

// failureOf returns why the run counts as failed, and the turn that pays: the one
// that the agent named, else the oldest. A run has not failed that was stopped, that
// has no open turns, or that exited with 0 after an answer, or closed its input or output, as agents for one prompt do.
func (r *run) failureOf(exit runtime.Exit, left []*msg.Turn) failure {
	f := r.agent.failure
	finished := r.agent.deaf || exit.Mute || exit.Code == 0 && exit.Signal == 0
	if f.problem == "" && (r.agent.ending() || len(left) == 0 || r.turns.last != nil && finished && exit.Err == nil) {
		return failure{}
	}
	if f.problem == "" {
		f = r.setup.exitFailure(exit)
	}
	if len(left) > 0 && !slices.ContainsFunc(left, func(t *msg.Turn) bool { return t.ID == f.turn }) {
		f.turn = left[0].ID
	}
	return f
}

// exitFailure is the failure of a run that ended by itself.
func (s *setup) exitFailure(exit runtime.Exit) failure {
	if exit.Err != nil {
		f := failure{problem: s.problem("cannot run the agent: " + exit.Err.Error()), kind: msg.ErrorSession}
		switch runtime.ClassOf(exit.Err) {
		case runtime.ClassSetup:
			f.kind, f.setup = msg.ErrorPermanent, true
		case runtime.ClassMachine:
			f.kind = msg.ErrorMachine
		}
		return f
	}
	problem := "the agent ended without an answer: " + exit.Reason()
	if tail := strings.TrimSpace(exit.StderrTail); tail != "" {
		problem += ": " + tail[strings.LastIndexByte(tail, '\n')+1:]
	}
	return failure{problem: s.problem(problem), kind: msg.ErrorSession}
}

// endSession drops the session of a run that failed with it, and notifies the chat. The
// agent learns of it at the start of its next run.
func (l *leftovers) endSession(tx *store.Tx, turns []*msg.Turn, now int64) error {
	f := l.failure
	switch {
	case f.problem == "" || f.kind == msg.ErrorMachine:
		return nil
	case f.kind != msg.ErrorSession:
		return rows.StoreSession(tx, &l.row, f.turn, f.session, now)
	}
	evicted, err := rows.EvictSession(tx, l.row.Folder, l.row.Topic, l.row.Agent)
	if err != nil || !evicted {
		return err
	}
	for _, t := range turns {
		if t.ID == f.turn {
			return rows.PutInterimNotice(tx, t,
				"(I have lost our earlier conversation: the agent failed, and I start again without it. "+
					"Files are kept; tell me again what matters.)", now)
		}
	}
	return nil
}

func (l *leftovers) finalizeTurn(tx *store.Tx, t *msg.Turn, now int64) error {
	f := l.failure
	charged := f.problem != "" && t.ID == f.turn
	switch {
	case t.Frames > 0 && f.problem != "":
		t.ErrorKind = f.kind
		return rows.FinishTurn(tx, t, msg.TurnDone, msg.ReasonPartial, f.problem, now)
	case t.Frames > 0:
		return rows.FinishTurn(tx, t, msg.TurnDone, msg.ReasonInterrupted, "", now)
	case charged && f.kind == msg.ErrorMachine:
		l.queued = append(l.queued, t)
		return l.waitForMachine(tx, t, now)
	case charged && (f.kind == msg.ErrorPermanent || t.Attempts+1 >= l.env.cfg.Attempts):
		l.failed = append(l.failed, t)
		return l.failTurn(tx, t, now)
	}
	l.queued = append(l.queued, t)
	if !charged {
		return rows.RequeueTurn(tx, t.ID, rows.Requeue{Problem: t.Error, Kind: t.ErrorKind})
	}
	t.Attempts++
	t.NotBefore = now + max(l.env.cfg.Backoff(t.Attempts), f.delay).Milliseconds()
	err := rows.RequeueTurn(tx, t.ID, rows.Requeue{
		Attempt: true, WaitsFor: msg.WaitsRetry, NotBefore: t.NotBefore, Kind: f.kind, Problem: f.problem,
	})
	if err != nil || f.delay <= maxQuietWait*time.Millisecond {
		return err
	}
	return l.noticeWait(tx, t, fmt.Sprintf("Your message waits: the agent can go on in %s. I will answer then.",
		f.delay.Round(time.Minute)), now)
}

// failTurn ends a turn as failed. Its place is notified, unless it was of another turn
// that failed in the same way within the hour.
func (l *leftovers) failTurn(tx *store.Tx, t *msg.Turn, now int64) error {
	f := l.failure
	escalated, err := rows.Escalated(l.env.ctx, tx.Reader, t)
	if err != nil {
		return err
	}
	notified := false
	if !escalated { // else a group waits for an answer
		if notified, err = rows.NotifiedOf(l.env.ctx, tx.Reader, t, f.kind, now-apologyInterval); err != nil {
			return err
		}
	}
	reason := msg.ReasonAgentError
	if notified {
		reason = msg.ReasonAlreadyTold
	}
	t.ErrorKind = f.kind
	if err := rows.FinishTurn(tx, t, msg.TurnFailed, reason, f.problem, now); err != nil {
		return err
	}
	alike, err := rows.CountFailure(tx, t.Folder, similar(f), now, now+l.env.cfg.Probe.Milliseconds())
	if err != nil {
		return err
	}
	l.alike = l.alike || alike
	if notified {
		return rows.MarkUnanswered(tx, t, now)
	}
	return l.env.putFailure(tx, t, l.failureNotice(t), now)
}

// retryTimeout is how long the notice of a failed turn has its button.
const retryTimeout = 24 * time.Hour

// putFailure notifies a chat of a failed turn, with a button that retries it.
func (e *env) putFailure(tx *store.Tx, t *msg.Turn, text string, now int64) error {
	if t.WorksForGroup() || msg.NoUsers(t.ChatJID) {
		return rows.PutNotice(tx, t, text, now)
	}
	asking, err := rows.TurnQuestions(e.ctx, tx.Reader, t.ID)
	if err != nil {
		return err
	}
	who := OperatorsOf(e.operators(), t.ChatJID)
	who.Label += " and the sender"
	for _, m := range asking {
		if payer := m.Payer(); payer != "" && !who.May(payer) {
			who.Senders = append(who.Senders, payer)
		}
	}
	_, err = rows.PutAsk(tx, t, &rows.Question{AskID: msg.AskRetry, Question: text, Options: []string{msg.RetryLabel},
		Who: who, Source: msg.SourceNotice, ExpiresAt: now + retryTimeout.Milliseconds()}, now)
	if errors.Is(err, rows.ErrNoUser) {
		return rows.PutNotice(tx, t, text, now)
	}
	return err
}

// numbers matches the parts that differ in the texts of failures that are alike: ids, times, addresses.
var numbers = regexp.MustCompile(`[0-9a-fA-F]*[0-9][0-9a-fA-F]*`)

// similar is the same text for failures that are alike.
func similar(f failure) string {
	text := numbers.ReplaceAllString(f.problem, "0")
	return string(f.kind) + ": " + strings.ToValidUTF8(text[:min(len(text), maxProblem)], "")
}

// waitForMachine queues a turn again that this machine could not start an agent for.
func (l *leftovers) waitForMachine(tx *store.Tx, t *msg.Turn, now int64) error {
	f := l.failure
	t.NotBefore = now + l.env.cfg.Machine(l.problems.machineFailures(l.row.Runtime)+1).Milliseconds()
	err := rows.RequeueTurn(tx, t.ID, rows.Requeue{WaitsFor: msg.WaitsMachine, NotBefore: t.NotBefore, Kind: f.kind,
		Problem: f.problem})
	if err != nil || now-t.CreatedAt < maxQuietWait {
		return err
	}
	return l.noticeWait(tx, t,
		"Your message waits: I cannot start the agent right now. I will answer as soon as I can.", now)
}

// noticeWait notifies a turn's chat that it waits, unless it has had a notice about it.
func (l *leftovers) noticeWait(tx *store.Tx, t *msg.Turn, text string, now int64) error {
	notified, err := rows.HasNotice(l.env.ctx, tx.Reader, t.ID, "")
	if err != nil || notified {
		return err
	}
	return rows.PutInterimNotice(tx, t, text, now)
}

// failureNotice is the one message to the chat about a failed turn. The reason is
// for operators alone: it may hold details that users must not see.
func (l *leftovers) failureNotice(t *msg.Turn) string {
	why := fmt.Sprintf("the agent failed %d times", l.env.cfg.Attempts)
	switch {
	case l.failure.setup:
		why = "the agent is not set up correctly"
	case l.failure.kind == msg.ErrorPermanent:
		why = "the agent cannot do it"
	}
	return noticeFailed(t.ID, why)
}

func noticeFailed(turn int64, why string) string {
	return fmt.Sprintf("Sorry, I could not answer this: %s. Operators: turn %d has the reason and can be retried.", why,
		turn)
}
