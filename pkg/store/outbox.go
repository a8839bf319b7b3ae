package store

import (
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// Lane is a thread of a chat, in which outbound rows keep their order: answers among themselves, and decorations, see
// msg.Message.Decorates.
type Lane struct {
	ChatJID     string
	ThreadID    string
	Decorations bool
}

// Delivery is the delivery of one part of an outbound row. Times are unix
// milliseconds; an empty string stands for NULL.
type Delivery struct {
	MessageID  int64
	Part       int
	State      msg.OutState
	Attempts   int
	NotBefore  int64 // the next attempt is not made before
	PlatformID string
	ErrorClass msg.ErrorClass
	Error      string
	UpdatedAt  int64 // when it last changed; PutDelivery takes the time apart
}

// Deliveries returns a row's parts in order, none if it was not claimed yet.
func (r Reader) Deliveries(ctx context.Context, messageID int64) ([]Delivery, error) {
	return All(ctx, r, func(scan Scan) (d Delivery, err error) {
		err = scan(&d.MessageID, &d.Part, &d.State, &d.Attempts, &d.NotBefore, &d.PlatformID, &d.ErrorClass, &d.Error,
			&d.UpdatedAt)
		return d, err
	}, `SELECT message_id, part, state, attempts, not_before, ifnull(platform_id,''), ifnull(error_class,''), ifnull(error,''),
		updated_at FROM deliveries WHERE message_id = ? ORDER BY part`,
		messageID)
}

// ClaimOutbound claims a queued row for delivery in a number of parts, at least
// one, and marks the first as sending. It returns ErrStale if the row is not
// queued.
func (tx *Tx) ClaimOutbound(messageID int64, parts int, now int64) error {
	tx.Note(failpoint.ClaimOutbound)
	n, err := tx.Change(`UPDATE messages SET out_state = 'sending' WHERE id = ? AND out_state = 'queued'`, messageID)
	if err == nil && n == 0 {
		err = fmt.Errorf("claim row %d: %w", messageID, ErrStale)
	}
	state := msg.OutSending
	for part := 0; err == nil && part < max(parts, 1); part++ {
		err = tx.PutDelivery(Delivery{MessageID: messageID, Part: part, State: state}, now)
		state = msg.OutQueued
	}
	return err
}

// PutDelivery writes the state of a part, as the latest delivery change.
func (tx *Tx) PutDelivery(d Delivery, now int64) error {
	tx.Note(failpoint.PutDelivery)
	err := tx.Exec(`INSERT INTO deliveries (message_id, part, state, attempts, not_before, platform_id, error_class, error, updated_at)
		VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (message_id, part) DO UPDATE SET state = excluded.state, attempts = excluded.attempts,
		not_before = excluded.not_before, platform_id = excluded.platform_id, error_class = excluded.error_class,
		error = excluded.error, updated_at = excluded.updated_at`,
		d.MessageID, d.Part, d.State, d.Attempts, d.NotBefore, Null(d.PlatformID),
		Null(d.ErrorClass), Null(CleanText(d.Error)), now)
	if err == nil && d.PlatformID != "" {
		err = tx.Exec(`UPDATE messages SET platform_id = NULL, disposition = 'dropped', reason = 'duplicate'
			WHERE chat_jid = (SELECT chat_jid FROM messages WHERE id = ?) AND platform_id = ? AND disposition = 'observed' AND reason = 'quoted'`,
			d.MessageID, d.PlatformID) // a user answered it before this was known
	}
	if err == nil {
		tx.Poke("routd") // the first part that is delivered opens an engagement
	}
	return err
}

// SettleOutbound ends the delivery of a claimed row as sent, ambiguous or failed.
// platformID is that of its first part, "" for none; it is not stored if another
// row of the chat has it. It returns ErrStale if the row is not sending.
func (tx *Tx) SettleOutbound(messageID int64, state msg.OutState, platformID string) error {
	tx.Note(failpoint.SettleOutbound)
	n, err := tx.Change(`UPDATE messages SET out_state = ?1, platform_id = (SELECT ?2 WHERE NOT EXISTS
		(SELECT 1 FROM messages o WHERE o.chat_jid = messages.chat_jid AND o.platform_id = ?2))
		WHERE id = ?3 AND out_state = 'sending'`,
		state, Null(platformID), messageID)
	if err == nil && n == 0 {
		err = fmt.Errorf("settle row %d: %w", messageID, ErrStale)
	}
	return err
}
