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

func (r Reader) turns(ctx context.Context, query string, args ...any) ([]*msg.Turn, error) {
	return collect(ctx, r.q, scanTurn, query, args...)
}

// Turn returns a turn by id, nil if there is none.
func (r Reader) Turn(ctx context.Context, id int64) (*msg.Turn, error) {
	return first(r.turns(ctx, queryTurn, id))
}

// OpenTurns returns every turn that has not ended, oldest first.
func (r Reader) OpenTurns(ctx context.Context) ([]*msg.Turn, error) {
	return r.turns(ctx, queryOpenTurns)
}

// RunTurns returns the unanswered turns of a run, oldest first.
func (r Reader) RunTurns(ctx context.Context, runID int64) ([]*msg.Turn, error) {
	return r.turns(ctx, queryRunTurns, runID)
}

// Turns lists turns newest first, of one state and one chat where these are
// not empty, at most limit.
func (r Reader) Turns(ctx context.Context, state msg.TurnState, chatJID string, limit int) ([]*msg.Turn, error) {
	if chatJID == "" {
		return r.turns(ctx, queryTurns, state, limit)
	}
	return r.turns(ctx, queryChatTurns, chatJID, state, limit)
}

// ShownUpto is the decision up to which a session has been shown what its
// folder observed: that of its last finished turn.
func (r Reader) ShownUpto(ctx context.Context, folder, topic string) (seq int64, err error) {
	_, err = r.q.get(ctx, []any{&seq}, queryShownUpto, folder, topic)
	return seq, err
}

// LastTurnAt is when the last turn of the folder but one began, 0 if none did.
func (r Reader) LastTurnAt(ctx context.Context, folder string, but int64) (at int64, err error) {
	_, err = r.q.get(ctx, []any{&at}, queryLastTurnAt, folder, but)
	return at, err
}

// PutTurn inserts a turn: queued, or, where offerTo names a live run, piped to
// it: running if that run has nothing else to answer, offered behind it
// otherwise. t.ID, t.State and t.RunID say what it became; a run that closed
// in the meantime makes it queued.
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

// pokeTyping tells the adapter of a turn's chat that an agent began or ended to
// work there.
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

// OfferTurn pipes a queued turn to a live run. It returns ErrStale if the turn
// is not queued any more or the run is closed.
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

// endTurn gives an open turn its final state and lets go of the system
// messages that its prompt carried: they are gone if it was answered, else they
// wait, but for the one about its own new session,
// for the folder's next prompt otherwise.
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

// CancelTurn ends an open turn and withdraws its unsent replies. It returns
// ErrStale if the turn has ended already.
func (tx *Tx) CancelTurn(id int64, reason msg.Reason, now int64) error {
	tx.note(failpoint.CancelTurn)
	if err := tx.endTurn(id, msg.TurnCancelled, reason, "", now); err != nil {
		return err
	}
	return tx.CancelReplies(id)
}

// CancelChatTurns cancels the open turns that answer in a chat, whatever their
// folder, and returns them as they were; if topic is not nil only those of the
// topic and what they set in motion elsewhere.
func (tx *Tx) CancelChatTurns(chatJID string, topic *string, now int64) ([]*msg.Turn, error) {
	all, err := tx.turns(uncancelled(), queryOpenOfChat, chatJID)
	if err != nil {
		return nil, err
	}
	var cancelled []*msg.Turn
	for _, t := range all {
		concerned, err := tx.ofTopic(t, topic)
		if err != nil {
			return nil, err
		}
		if !concerned {
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

// RequeueTurn puts a turn back in the queue, to be taken up at notBefore, and
// counts an attempt if asked to.
func (tx *Tx) RequeueTurn(id int64, attempt bool, problem string, notBefore int64) error {
	tx.note(failpoint.RequeueTurn)
	n, err := tx.change(updateRequeueTurn, attempt, problem, notBefore, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("requeue turn %d: %w", id, ErrStale)
	}
	return err
}

// ReviveTurn queues a failed or cancelled turn again as if it had never run,
// or takes one out of its backoff. It returns ErrStale in any other state.
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

// CountDelegations is how many turns a root turn has set in motion elsewhere.
func (r Reader) CountDelegations(ctx context.Context, rootTurnID int64) (n int, err error) {
	_, err = r.q.get(ctx, []any{&n}, queryDelegations, rootTurnID)
	return n, err
}
