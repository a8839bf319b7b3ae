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
	}, queryDeliveries, messageID)
}

// ClaimOutbound claims a queued row for delivery in a number of parts, at least
// one, and marks the first as sending. It returns ErrStale if the row is not
// queued.
func (tx *Tx) ClaimOutbound(messageID int64, parts int, now int64) error {
	tx.Note(failpoint.ClaimOutbound)
	n, err := tx.Change(updateClaimOutbound, messageID)
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
	err := tx.Exec(putDelivery, d.MessageID, d.Part, d.State, d.Attempts, d.NotBefore, Null(d.PlatformID),
		Null(d.ErrorClass), Null(CleanText(d.Error)), now)
	if err == nil && d.PlatformID != "" {
		err = tx.Exec(updateEndQuotedOfOwn, d.MessageID, d.PlatformID) // a user answered it before this was known
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
	n, err := tx.Change(updateSettleOutbound, state, Null(platformID), messageID)
	if err == nil && n == 0 {
		err = fmt.Errorf("settle row %d: %w", messageID, ErrStale)
	}
	return err
}

// PutCursor stores a daemon's value under a key, such as how far it has read.
func (tx *Tx) PutCursor(daemon, key, value string) error {
	tx.Note(failpoint.PutCursor)
	return tx.Exec(`INSERT INTO cursors (daemon, key, value) VALUES (?,?,?)
		ON CONFLICT (daemon, key) DO UPDATE SET value = excluded.value`, daemon, key, value)
}

// DeleteCursor deletes a daemon's value under a key.
func (tx *Tx) DeleteCursor(daemon, key string) error {
	return tx.Exec(`DELETE FROM cursors WHERE daemon = ? AND key = ?`, daemon, key)
}

// DaemonCursor is a daemon's value under a key, "" for none.
func (r Reader) DaemonCursor(ctx context.Context, daemon, key string) (string, error) {
	return Value[string](ctx, r, `SELECT value FROM cursors WHERE daemon = ? AND key = ?`, daemon, key)
}

// DaemonCursors returns a daemon's values by key, for keys with a prefix.
func (r Reader) DaemonCursors(ctx context.Context, daemon, prefix string) (map[string]string, error) {
	all := map[string]string{}
	_, err := All(ctx, r, func(scan Scan) (struct{}, error) {
		var key, value string
		err := scan(&key, &value)
		all[key] = value
		return struct{}{}, err
	}, `SELECT key, value FROM cursors WHERE daemon = ? AND substr(key, 1, length(?2)) = ?2`, daemon, prefix)
	return all, err
}
