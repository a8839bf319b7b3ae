package store

import (
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// MaxWait is the longest wait of a queued turn. One that seems to wait for longer, or that was stored or began
// maxSkew later than now, may start: the clock was set back.
const MaxWait = 3_600_000 // ms

// maxSkew is how far ahead of now a stored time may be although the clock was not set back: another machine's clock may
// be ahead, and what was stored since the caller read its own is later, too.
const maxSkew = 60_000 // ms

const turnColumns = `t.id, ifnull(t.run_id,0), t.kind, t.folder, t.chat_jid, t.topic, t.thread_id, t.place,
	ifnull(t.reply_to,''), t.trigger_message_id, t.claims_engagement, t.surface, t.ceiling, t.state, t.reason,
	t.attempts, t.not_before, t.waits_for, t.row_count, t.row_bytes, t.observed_upto, t.frames, t.depth,
	ifnull(t.root_turn_id,0), ifnull(t.answered_with,0), t.error, t.error_kind, t.created_at, ifnull(t.started_at,0), ifnull(t.ended_at,0)`

func scanTurn(scan scanner) (*msg.Turn, error) {
	var t msg.Turn
	err := scan(&t.ID, &t.RunID, &t.Kind, &t.Folder, &t.ChatJID, &t.Topic, &t.ThreadID, &t.Place,
		&t.ReplyTo, &t.TriggerMessageID, &t.ClaimsEngagement, &t.Surface, &t.Ceiling, &t.State, &t.Reason,
		&t.Attempts, &t.NotBefore, &t.WaitsFor, &t.RowCount, &t.RowBytes, &t.ObservedUpto, &t.Frames, &t.Depth,
		&t.RootTurnID, &t.AnsweredWith, &t.Error, &t.ErrorKind, &t.CreatedAt, &t.StartedAt, &t.EndedAt)
	return &t, err
}

func (r Reader) queryTurns(ctx context.Context, query string, args ...any) ([]*msg.Turn, error) {
	return collect(ctx, r, scanTurn, query, args...)
}

// Turn returns a turn by id, nil if there is none.
func (r Reader) Turn(ctx context.Context, id int64) (*msg.Turn, error) {
	return first(r.queryTurns(ctx, queryTurn, id))
}

// OpenTurns returns every turn that has not ended, oldest first.
func (r Reader) OpenTurns(ctx context.Context) ([]*msg.Turn, error) {
	return r.queryTurns(ctx, queryOpenTurns)
}

// RunTurns returns the unanswered turns of a run, oldest first.
func (r Reader) RunTurns(ctx context.Context, runID int64) ([]*msg.Turn, error) {
	return r.queryTurns(ctx, queryRunTurns, runID)
}

// TurnList is which turns Turns lists. Of State, ChatJID and Folder what is "" does not count.
type TurnList struct {
	State   msg.TurnState
	ChatJID string
	Folder  string // only turns that have started; not together with the others
	Before  int64  // only those with a smaller id, 0 for all
	Limit   int
}

// Turns lists turns, newest first.
func (r Reader) Turns(ctx context.Context, l TurnList) ([]*msg.Turn, error) {
	before := orNewest(l.Before)
	switch {
	case l.ChatJID != "":
		return r.queryTurns(ctx, queryChatTurns, l.ChatJID, l.State, before, l.Limit)
	case l.Folder != "":
		return r.queryTurns(ctx, queryFolderTurns, l.Folder, before, l.Limit)
	}
	query := queryTurns // most turns are done: it stops when the page is full
	switch l.State {
	case msg.TurnQueued, msg.TurnRunning:
		query = queryOpenState
	case msg.TurnFailed, msg.TurnCancelled:
		query = queryFailedState
	}
	return r.queryTurns(ctx, query, l.State, before, l.Limit)
}

// Answered is what the next prompts of a session depend on.
type Answered struct {
	ObservedUpto int64 // its prompts have shown observed rows up to this decision
	EndedAt      int64 // unix ms
}

// LastAnswered is the last finished turn of a session with an id below `before`, zero
// if there is none.
func (r Reader) LastAnswered(ctx context.Context, folder, topic string, before int64) (a Answered, err error) {
	_, err = r.get(ctx, []any{&a.ObservedUpto, &a.EndedAt}, queryLastAnswered, folder, topic, before)
	return a, err
}

// LastTurnAt is when the folder's last turn other than except began, 0 if there
// is none.
func (r Reader) LastTurnAt(ctx context.Context, folder string, except int64) (int64, error) {
	return value[int64](ctx, r, queryLastTurnAt, folder, except)
}

// PutTurn stores a turn, and sets its id, state and run. In this order:
//   - an idle run of its address takes it, if no turn waits that could come before
//     it and fewer than maxAgents runs are busy;
//   - the newest queued turn of its conversation takes its rows in, if that is of
//     the same address and place, no run has begun it, and the rows fit. Then
//     joined is true, and t becomes that turn;
//   - it is queued.
//
// t.RowCount and t.RowBytes are the size of its rows; one without a size takes in
// no rows and joins no turn. A turn with t.WaitsFor is not given to a run.
func (tx *Tx) PutTurn(t *msg.Turn, maxAgents int) (joined bool, err error) {
	tx.note(failpoint.PutTurn)
	t.State, t.RunID = msg.TurnQueued, 0
	run, err := tx.runFor(t, maxAgents)
	if err != nil {
		return false, err
	}
	if run != 0 {
		t.RunID, t.State, t.StartedAt = run, msg.TurnRunning, t.CreatedAt
	} else if joined, err = tx.join(t); err != nil || joined {
		return joined, err
	}
	if err = tx.insertTurn(t); err != nil || run == 0 {
		return false, err
	}
	return false, tx.AttachNotes(t)
}

func (tx *Tx) insertTurn(t *msg.Turn) (err error) {
	t.ID, err = tx.insert(insertTurn,
		null(t.RunID), t.Kind, t.Folder, t.ChatJID, t.Topic, t.ThreadID, t.Place, null(t.ReplyTo),
		t.TriggerMessageID, t.ClaimsEngagement, t.Surface, t.Ceiling, t.State, t.NotBefore, t.WaitsFor, t.RowCount,
		t.RowBytes,
		t.Depth, null(t.RootTurnID), t.CreatedAt, null(t.StartedAt))
	tx.pokeForTurn(t)
	return err
}

// pokeForTurn pokes the adapter, which shows typing, and routd if the turn claims
// engagement.
func (tx *Tx) pokeForTurn(t *msg.Turn) {
	tx.pokePeers()
	if t.ClaimsEngagement {
		tx.Poke("routd")
	}
	tx.pokeTyping(t)
}

// pokeTyping pokes the adapter of a turn's chat, so that it starts or stops to
// show typing.
func (tx *Tx) pokeTyping(t *msg.Turn) { tx.Poke(msg.DaemonOf(t.ChatJID)) }

// runFor returns the live run that a new turn can go to at once, 0 for none.
func (tx *Tx) runFor(t *msg.Turn, maxAgents int) (run int64, err error) {
	if t.Kind == msg.Delegated || t.WaitsFor != "" {
		return 0, nil
	}
	_, err = tx.find([]any{&run}, queryRunFor, t.Folder, t.Topic, t.ChatJID, t.ThreadID, t.Lane(), minFailures,
		maxAgents)
	return run, err
}

// FreeSlot reports whether fewer than maxAgents runs of this process are busy. One that waits for the answer to a
// question is not.
func (tx *Tx) FreeSlot(maxAgents int) (bool, error) {
	var busy int
	_, err := tx.find([]any{&busy}, queryBusyRunsOf, tx.ownProcess())
	return busy < maxAgents, err
}

// join adds a new turn's rows to the newest queued turn of its conversation.
func (tx *Tx) join(t *msg.Turn) (bool, error) {
	if t.RowCount == 0 || t.Kind != msg.Conversation {
		return false, nil
	}
	old, err := first(tx.queryTurns(uncancelled(), queryNewestQueued, t.Lane(), t.ChatJID, t.Topic))
	if err != nil || old == nil || !takesIn(old, t) {
		return false, err
	}
	if stopped, err := tx.stopped(old); err != nil || stopped {
		return false, err
	}
	newer, err := tx.newerTrigger(old, t)
	if err != nil {
		return false, err
	}
	if newer {
		old.TriggerMessageID, old.ReplyTo, old.Surface, old.Ceiling = t.TriggerMessageID, t.ReplyTo, t.Surface,
			t.Ceiling
	}
	old.ClaimsEngagement = old.ClaimsEngagement || t.ClaimsEngagement
	if old.WaitsFor == "" { // else the first files' time holds for all: the turn waits no longer for being joined
		old.WaitsFor, old.NotBefore = t.WaitsFor, t.NotBefore
	}
	old.RowCount, old.RowBytes = old.RowCount+t.RowCount, old.RowBytes+t.RowBytes
	*t = *old
	tx.pokeForTurn(t)
	err = tx.exec(updateJoin, null(t.ReplyTo), t.TriggerMessageID, t.ClaimsEngagement, t.Surface, t.Ceiling,
		t.NotBefore,
		t.WaitsFor, t.RowCount, t.RowBytes, t.ID)
	return true, err
}

// takesIn reports whether a queued turn may take in the rows of a newer one.
func takesIn(old, t *msg.Turn) bool {
	return old.Kind == t.Kind && old.Address() == t.Address() && old.Place == t.Place &&
		old.Depth == t.Depth && old.RootTurnID == t.RootTurnID &&
		old.Attempts == 0 && old.StartedAt == 0 && (old.WaitsFor == "" || old.WaitsFor == msg.WaitsFiles) &&
		old.RowCount > 0 && old.RowCount+t.RowCount <= msg.MaxTurnRows && old.RowBytes+t.RowBytes <= msg.MaxTurnBytes
}

// newerTrigger reports whether the joined turn answers the newer rows' trigger: a
// turn answers its last mention or reply, else its last row.
func (tx *Tx) newerTrigger(old, t *msg.Turn) (bool, error) {
	var addressed [2]bool
	for i, id := range []int64{old.TriggerMessageID, t.TriggerMessageID} {
		if _, err := tx.find([]any{&addressed[i]}, queryAddressed, id); err != nil {
			return false, err
		}
	}
	return addressed[1] || !addressed[0], nil
}

// TakeTurn gives a queued turn to a live run. It returns ErrStale if the turn is
// not queued, or is covered by a /stop, or the run takes no more turns.
func (tx *Tx) TakeTurn(id, runID, now int64) error {
	var live, alone bool
	var open int
	t, err := tx.Turn(uncancelled(), id)
	if err != nil {
		return err
	}
	if _, err := tx.find([]any{&live}, queryRunTakes, runID); err != nil {
		return err
	}
	if _, err := tx.find([]any{&open, &alone}, queryRunLoad, runID); err != nil {
		return err
	}
	if t == nil || t.Alone() || !live || alone || open >= msg.MaxRunTurns {
		return fmt.Errorf("give turn %d to run %d: %w", id, runID, ErrStale)
	}
	return tx.giveTurn(t, runID, now)
}

func (tx *Tx) giveTurn(t *msg.Turn, runID, now int64) error {
	tx.note(failpoint.TakeTurn)
	stopped, err := tx.stopped(t)
	if err != nil {
		return err
	}
	if stopped || waits(t, now) {
		return fmt.Errorf("give turn %d to run %d: it is stopped or waits: %w", t.ID, runID, ErrStale)
	}
	n, err := tx.change(updateTake, runID, now, t.ID)
	if err == nil && n == 0 {
		err = fmt.Errorf("give turn %d to run %d: %w", t.ID, runID, ErrStale)
	}
	if err != nil {
		return err
	}
	return tx.AttachNotes(t)
}

// waits reports whether a queued turn may not start yet. NextQueued has the same cases.
func waits(t *msg.Turn, now int64) bool {
	return t.NotBefore > now && t.NotBefore <= now+MaxWait && max(t.CreatedAt, t.StartedAt) <= now+maxSkew
}

// ending is how a turn ends.
type ending struct {
	state   msg.TurnState
	reason  msg.Reason
	kind    msg.ErrorKind // of the problem
	problem string
	// Of the last frame:
	replied      bool  // it has a message
	observedUpto int64 // the last decision that the prompt showed
	answeredWith int64 // the turn whose answer is for this one too, 0 for none
}

// endTurn sets an open turn's final state. The system messages that its prompt
// carried are deleted if it was answered; else they are released for the folder's
// next prompt, except the one about the turn's own new session.
func (tx *Tx) endTurn(t *msg.Turn, e ending, now int64) error {
	tx.note(failpoint.EndTurn)
	id := t.ID
	n, err := tx.change(updateEndTurn, e.state, e.reason, e.problem, e.kind, now, id, e.replied, e.observedUpto,
		null(e.answeredWith))
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("end turn %d: %w", id, ErrStale)
	}
	tx.turnEnded(e.state, e.reason)
	tx.pokePeers()
	tx.Poke("routd")
	if e.state != msg.TurnCancelled { // CancelTurn does it, behind its replies
		if err := tx.Unmark(id, now); err != nil {
			return err
		}
	}
	if err := tx.expireAsks(id, now); err != nil {
		return err
	}
	if err := tx.endRequest(t, e.state, now); err != nil {
		return err
	}
	if err = tx.exec(deleteSystem, id, e.state == msg.TurnDone); err != nil {
		return err
	}
	if e.state == msg.TurnDone { // the answer is a message now
		return tx.exec(updateEndProgress, id)
	}
	return tx.exec(updateReleaseSystem, id)
}

// CancelTurn ends an open turn and cancels its unsent replies. It returns
// ErrStale if the turn has ended already.
func (tx *Tx) CancelTurn(id int64, reason msg.Reason, now int64) error {
	tx.note(failpoint.CancelTurn)
	t, err := tx.Turn(uncancelled(), id)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("cancel turn %d: %w", id, ErrStale)
	}
	if err := tx.endTurn(t, ending{state: msg.TurnCancelled, reason: reason}, now); err != nil {
		return err
	}
	if err := tx.CancelReplies(id); err != nil {
		return err
	}
	return tx.Unmark(id, now)
}

// Requeue says how an open turn is queued again.
type Requeue struct {
	Attempt   bool         // it has used up an attempt
	WaitsFor  msg.WaitsFor // why it does not start before NotBefore
	NotBefore int64        // unix ms
	Kind      msg.ErrorKind
	Problem   string
}

// RequeueTurn queues an open turn again. It returns ErrStale if the turn has ended.
func (tx *Tx) RequeueTurn(id int64, q Requeue) error {
	tx.note(failpoint.RequeueTurn)
	tx.pokePeers()
	n, err := tx.change(updateRequeue, q.Attempt, q.WaitsFor, q.NotBefore, q.Problem, q.Kind, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("requeue turn %d: %w", id, ErrStale)
	}
	if err == nil {
		err = tx.exec(deleteTurnProgress, id)
	}
	if err != nil {
		return err
	}
	return tx.releaseNotes(id)
}

// ReviveTurn queues a failed or cancelled turn as if it had never run, or ends a
// queued turn's wait. It returns ErrStale in any other state.
func (tx *Tx) ReviveTurn(id int64) error {
	n, err := tx.change(updateRevive, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("revive turn %d: %w", id, ErrStale)
	}
	if err != nil {
		return err
	}
	tx.Poke("gated")
	return tx.exec(deleteTurnProgress, id)
}

// FoldedInto returns the turns that were answered with a turn's answer, oldest first.
func (r Reader) FoldedInto(ctx context.Context, turnID int64) ([]*msg.Turn, error) {
	return r.queryTurns(ctx, queryFoldedInto, turnID)
}

// Delegated returns the turns delegated below a root turn, oldest first.
func (r Reader) Delegated(ctx context.Context, rootTurnID int64) ([]*msg.Turn, error) {
	return r.queryTurns(ctx, queryDelegated, rootTurnID)
}

// CountDelegations is the number of turns delegated below a root turn.
func (r Reader) CountDelegations(ctx context.Context, rootTurnID int64) (int, error) {
	return value[int](ctx, r, queryDelegations, rootTurnID)
}
