package store

import (
	"cmp"
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const turnColumns = `t.id, ifnull(t.run_id,0), t.kind, t.folder, t.chat_jid, t.topic, t.thread_id, t.place,
	ifnull(t.reply_to,''), t.trigger_message_id, t.claims_engagement, t.surface, t.ceiling, t.state, t.reason,
	t.attempts, t.not_before, t.observed_upto, t.frames, t.depth, ifnull(t.root_turn_id,0), t.error,
	t.created_at, ifnull(t.started_at,0), ifnull(t.ended_at,0)`

func scanTurn(scan scanner) (*msg.Turn, error) {
	var t msg.Turn
	err := scan(&t.ID, &t.RunID, &t.Kind, &t.Folder, &t.ChatJID, &t.Topic, &t.ThreadID, &t.Place,
		&t.ReplyTo, &t.TriggerMessageID, &t.ClaimsEngagement, &t.Surface, &t.Ceiling, &t.State, &t.Reason,
		&t.Attempts, &t.NotBefore, &t.ObservedUpto, &t.Frames, &t.Depth, &t.RootTurnID, &t.Error,
		&t.CreatedAt, &t.StartedAt, &t.EndedAt)
	return &t, err
}

func (r Reader) queryTurns(ctx context.Context, query string, args ...any) ([]*msg.Turn, error) {
	return collect(ctx, r.q, scanTurn, query, args...)
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

// Turns returns turns, newest first, at most limit; only those of a state and of
// a chat unless these are "".
func (r Reader) Turns(ctx context.Context, state msg.TurnState, chatJID string, limit int) ([]*msg.Turn, error) {
	if chatJID == "" {
		return r.queryTurns(ctx, queryTurns, state, limit)
	}
	return r.queryTurns(ctx, queryChatTurns, chatJID, state, limit)
}

// ShownUpto is the decision up to which a session's prompts have shown observed
// rows: that of its last finished turn.
func (r Reader) ShownUpto(ctx context.Context, folder, topic string) (seq int64, err error) {
	_, err = r.q.get(ctx, []any{&seq}, queryShownUpto, folder, topic)
	return seq, err
}

// LastTurnAt is when the folder's last turn other than except began, 0 if there
// is none.
func (r Reader) LastTurnAt(ctx context.Context, folder string, except int64) (at int64, err error) {
	_, err = r.q.get(ctx, []any{&at}, queryLastTurnAt, folder, except)
	return at, err
}

// PutTurn inserts a turn: queued, or, if offerTo is a live run, assigned to it,
// as running if that run has no other turn, else as offered. It sets t.ID, t.State
// and t.RunID. If the run has closed in the meantime, the turn is queued.
func (tx *Tx) PutTurn(t *msg.Turn, offerTo int64) (err error) {
	tx.note(failpoint.PutTurn)
	t.State, t.RunID = msg.TurnQueued, 0
	if offerTo != 0 {
		if err := tx.offer(t, offerTo); err != nil {
			return err
		}
	}
	t.ID, err = tx.insert(insertTurn,
		null(t.RunID), t.Kind, t.Folder, t.ChatJID, t.Topic, t.ThreadID, t.Place, null(t.ReplyTo),
		t.TriggerMessageID, t.ClaimsEngagement, t.Surface, t.Ceiling, t.State, t.Depth, null(t.RootTurnID),
		t.CreatedAt, null(t.StartedAt))
	if err == nil && t.ClaimsEngagement {
		tx.Poke("routd")
	}
	tx.pokeTyping(t)
	return err
}

// pokeTyping pokes the adapter of a turn's chat, so that it starts or stops to
// show typing.
func (tx *Tx) pokeTyping(t *msg.Turn) { tx.Poke(msg.DaemonOf(t.ChatJID)) }

func (tx *Tx) offer(t *msg.Turn, runID int64) error {
	var live, busy bool
	if _, err := tx.get([]any{&live}, queryRunIsLive, runID); err != nil || !live {
		return err
	}
	if _, err := tx.get([]any{&busy}, queryRunIsBusy, runID); err != nil {
		return err
	}
	t.RunID, t.State = runID, msg.TurnOffered
	if !busy {
		t.State, t.StartedAt = msg.TurnRunning, t.CreatedAt
	}
	return nil
}

// OfferTurn assigns a queued turn to a live run. It returns ErrStale if the turn
// is not queued or the run is closed.
func (tx *Tx) OfferTurn(id, runID, now int64) error {
	tx.note(failpoint.OfferTurn)
	t := msg.Turn{CreatedAt: now}
	if err := tx.offer(&t, runID); err != nil {
		return err
	}
	n, err := tx.change(updateOfferTurn,
		null(t.RunID), cmp.Or(t.State, msg.TurnQueued), null(t.StartedAt), id)
	if err == nil && (n == 0 || t.RunID == 0) {
		err = fmt.Errorf("offer turn %d to run %d: %w", id, runID, ErrStale)
	}
	return err
}

// endTurn sets an open turn's final state. The system messages that its prompt
// carried are deleted if it was answered; else they are released for the folder's
// next prompt, except the one about the turn's own new session.
func (tx *Tx) endTurn(id int64, state msg.TurnState, reason msg.Reason, problem string, now int64) error {
	tx.note(failpoint.EndTurn)
	n, err := tx.change(updateEndTurn, state, reason, problem, now, id)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("end turn %d: %w", id, ErrStale)
	}
	tx.Poke("routd")
	if _, err = tx.exec(deleteSystem, id, state == msg.TurnDone); err != nil || state == msg.TurnDone {
		return err
	}
	_, err = tx.exec(updateReleaseSystem, id)
	return err
}

// CancelTurn ends an open turn and cancels its unsent replies. It returns
// ErrStale if the turn has ended already.
func (tx *Tx) CancelTurn(id int64, reason msg.Reason, now int64) error {
	tx.note(failpoint.CancelTurn)
	if err := tx.endTurn(id, msg.TurnCancelled, reason, "", now); err != nil {
		return err
	}
	return tx.CancelReplies(id)
}

// CancelChatTurns cancels the open turns that answer in a chat, of any folder,
// and returns them as they were. If topic is not nil, it cancels only those of the
// topic and those delegated by them.
func (tx *Tx) CancelChatTurns(chatJID string, topic *string, now int64) ([]*msg.Turn, error) {
	all, err := tx.queryTurns(uncancelled(), queryOpenOfChat, chatJID)
	if err != nil {
		return nil, err
	}
	var cancelled []*msg.Turn
	for _, t := range all {
		matches, err := tx.ofTopic(t, topic)
		if err != nil {
			return nil, err
		}
		if !matches {
			continue
		}
		if err := tx.CancelTurn(t.ID, msg.ReasonCancelled, now); err != nil {
			return nil, err
		}
		tx.pokeTyping(t)
		cancelled = append(cancelled, t)
	}
	return cancelled, nil
}

func (tx *Tx) ofTopic(t *msg.Turn, topic *string) (bool, error) {
	if topic == nil || t.Topic == *topic || t.RootTurnID == 0 {
		return topic == nil || t.Topic == *topic, nil
	}
	root, err := tx.Turn(uncancelled(), t.RootTurnID)
	return root != nil && root.Topic == *topic, err
}

// RequeueTurn queues an open turn again, not to be started before notBefore, and
// counts an attempt if attempt is set.
func (tx *Tx) RequeueTurn(id int64, attempt bool, problem string, notBefore int64) error {
	tx.note(failpoint.RequeueTurn)
	n, err := tx.change(updateRequeueTurn, attempt, problem, notBefore, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("requeue turn %d: %w", id, ErrStale)
	}
	return err
}

// ReviveTurn queues a failed or cancelled turn as if it had never run, or ends a
// queued turn's backoff. It returns ErrStale in any other state.
func (tx *Tx) ReviveTurn(id int64) error {
	n, err := tx.change(updateRevive, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("revive turn %d: %w", id, ErrStale)
	}
	if err == nil {
		tx.Poke("gated")
	}
	return err
}

// Delegated returns the turns delegated below a root turn, oldest first.
func (r Reader) Delegated(ctx context.Context, rootTurnID int64) ([]*msg.Turn, error) {
	return r.queryTurns(ctx, queryDelegated, rootTurnID)
}

// CountDelegations is the number of turns delegated below a root turn.
func (r Reader) CountDelegations(ctx context.Context, rootTurnID int64) (n int, err error) {
	_, err = r.q.get(ctx, []any{&n}, queryDelegations, rootTurnID)
	return n, err
}
