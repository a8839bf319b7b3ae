package rows

import (
	"context"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// MarkWaiting lets the sender of the message that a turn answers see that it waits, by a reaction on the message. It
// does nothing, and returns false, for a turn that an agent has begun or that has its mark, and where the platform has
// no reactions: telegram, discord, slack and the web chat have some.
func MarkWaiting(tx *store.Tx, turnID, now int64) (marked bool, err error) {
	t, err := tx.Turn(store.Uncancelled(), turnID)
	if err != nil || t == nil || t.Kind != msg.Conversation || t.WorksForGroup() {
		return false, err
	}
	waits, err := Waits(store.Uncancelled(), tx.Reader, turnID)
	if err != nil || !waits {
		return false, err
	}
	if marked, err := HasMark(store.Uncancelled(), tx.Reader, turnID); err != nil || marked {
		return false, err
	}
	return tx.MarkTurn(t, msg.MarkRead, now)
}

// MarkUnanswered lets the sender see that a turn failed when the chat gets no notice. The mark goes when the turn is
// retried.
func MarkUnanswered(tx *store.Tx, t *msg.Turn, now int64) error {
	if t.Kind != msg.Conversation || t.WorksForGroup() {
		return nil
	}
	_, err := tx.MarkTurn(t, msg.MarkUnanswered, now)
	return err
}

// Waits reports whether a turn is open and no agent works on it: it is queued, or its run has an older one and has said
// nothing of this one.
func Waits(ctx context.Context, r store.Reader, turnID int64) (bool, error) {
	// Whether a turn is open and no agent works on it.
	const query = `SELECT EXISTS (SELECT 1 FROM turns t WHERE t.id = ?1 AND (t.state = 'queued' OR t.state = 'running'
		AND EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = t.run_id AND o.id < t.id)
		AND NOT EXISTS (SELECT 1 FROM turn_progress p WHERE p.turn_id = t.id)))`
	return store.Value[bool](ctx, r, query, turnID)
}

// HasMark reports whether the message of a turn has a mark.
func HasMark(ctx context.Context, r store.Reader, turnID int64) (bool, error) {
	mark, err := store.First(r.Messages(ctx, store.QueryMark, turnID))
	return mark != nil && !strings.HasPrefix(mark.Content, "-"), err
}
