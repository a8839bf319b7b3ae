package rows

import (
	"context"
	"math"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// ParkedChat is a chat with parked rows: those that wait for an approval.
type ParkedChat struct {
	JID     string
	Pending bool // an operator has still to decide its request
}

// ParkedChats returns every chat with parked rows.
func ParkedChats(ctx context.Context, r store.Reader) ([]ParkedChat, error) {
	// A skip scan: a seek per chat.
	const query = `WITH RECURSIVE parked(jid) AS (
		SELECT min(chat_jid) FROM messages INDEXED BY messages_parked WHERE disposition = 'onboarding'
		UNION ALL SELECT (SELECT min(chat_jid) FROM messages INDEXED BY messages_parked
			WHERE disposition = 'onboarding' AND chat_jid > parked.jid)
		FROM parked WHERE parked.jid IS NOT NULL)
		SELECT jid, EXISTS (SELECT 1 FROM onboarding_requests INDEXED BY onboarding_pending WHERE state = 'pending' AND chat_jid = parked.jid)
		FROM parked WHERE jid IS NOT NULL`
	return store.All(ctx, r, func(scan store.Scan) (c ParkedChat, err error) {
		err = scan(&c.JID, &c.Pending)
		return c, err
	}, query)
}

// Parked returns a chat's parked rows, oldest first, at most limit, with the fields that a
// route matches and no content.
func Parked(ctx context.Context, r store.Reader, chatJID string, limit int) ([]*msg.Message, error) {
	const query = `SELECT m.id, ifnull(m.platform_id,''), m.sender, ` + store.ShortName +
		`, m.is_bot_message, m.verb, m.topic, m.thread_id, m.addressed, m.received_at
		FROM messages m INDEXED BY messages_parked WHERE m.disposition = 'onboarding' AND m.chat_jid = ? ORDER BY m.id LIMIT ?+0`
	return store.All(ctx, r, func(scan store.Scan) (*msg.Message, error) {
		m := &msg.Message{ChatJID: chatJID, Direction: msg.In, Disposition: msg.Onboarding}
		err := scan(&m.ID, &m.PlatformID, &m.Sender, &m.SenderName, &m.IsBot, &m.Verb, &m.Topic, &m.ThreadID,
			&m.Addressed, &m.ReceivedAt)
		if m.Verb == "" {
			m.Verb = msg.VerbMessage
		}
		return m, err
	}, query, chatJID, limit)
}

// TakeUp makes the parked rows of a chat undecided again. Their ids keep their order.
func TakeUp(tx *store.Tx, chatJID string, now int64) error {
	const query = `UPDATE messages INDEXED BY messages_parked SET disposition = NULL, reason = NULL, decided_at = NULL, decision_seq = NULL
		WHERE disposition = 'onboarding' AND chat_jid = ?`
	tx.Note(failpoint.TakeUp)
	ids, err := store.All(store.Uncancelled(), tx.Reader, store.One[int64], store.QueryParkedIDs, chatJID,
		math.MaxInt64)
	for _, id := range ids {
		if err == nil {
			err = tx.UnmarkMessage(id, now)
		}
	}
	if err == nil {
		err = tx.Exec(query, chatJID)
	}
	return err
}

// TakeUpRow makes one parked row undecided again. It returns ErrStale if the row is not
// parked.
func TakeUpRow(tx *store.Tx, id int64) error {
	const query = `UPDATE messages SET disposition = NULL, reason = NULL, decided_at = NULL, decision_seq = NULL
		WHERE id = ? AND disposition = 'onboarding'`
	tx.Note(failpoint.TakeUp)
	return change(tx, "take up row", id, query, id)
}

// DropParked drops the parked rows of a chat.
func DropParked(tx *store.Tx, chatJID string, reason msg.Reason, now int64) error {
	tx.Note(failpoint.Decide)
	ids, err := store.All(store.Uncancelled(), tx.Reader, store.One[int64], store.QueryParkedIDs, chatJID,
		math.MaxInt64)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := dropParked(tx, id, reason, now); err != nil {
			return err
		}
	}
	return nil
}

func dropParked(tx *store.Tx, id int64, reason msg.Reason, now int64) error {
	const query = `UPDATE messages SET disposition = 'dropped', reason = ?, decided_at = ?, decision_seq = ` + store.DecisionNumber + ` WHERE id = ? AND disposition = 'onboarding'`
	if err := tx.NumberDecision(); err != nil {
		return err
	}
	if err := tx.Exec(query, reason, now, id); err != nil {
		return err
	}
	if err := tx.UnmarkMessage(id, now); err != nil {
		return err
	}
	return tx.MarkDecided(id, reason.Shown().Mark, now)
}
