package store

import (
	"context"
	"fmt"
	"math"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// ParkedChat is a chat with parked rows: those that wait for an approval.
type ParkedChat struct {
	JID     string
	Pending bool // an operator has still to decide its request
}

// ParkedChats returns every chat with parked rows.
func (r Reader) ParkedChats(ctx context.Context) ([]ParkedChat, error) {
	return collect(ctx, r, func(scan scanner) (c ParkedChat, err error) {
		err = scan(&c.JID, &c.Pending)
		return c, err
	}, queryParkedChats)
}

// Parked returns a chat's parked rows, oldest first, at most limit, with what a route
// matches and no content.
func (r Reader) Parked(ctx context.Context, chatJID string, limit int) ([]*msg.Message, error) {
	return collect(ctx, r, func(scan scanner) (*msg.Message, error) {
		m := &msg.Message{ChatJID: chatJID, Direction: msg.In, Disposition: msg.Onboarding}
		err := scan(&m.ID, &m.PlatformID, &m.Sender, &m.SenderName, &m.IsBot, &m.Verb, &m.Topic, &m.ThreadID,
			&m.Addressed, &m.ReceivedAt)
		if m.Verb == "" {
			m.Verb = msg.VerbMessage
		}
		return m, err
	}, queryParked, chatJID, limit)
}

// TakeUp makes the parked rows of a chat undecided again. Their ids keep their order.
func (tx *Tx) TakeUp(chatJID string, now int64) error {
	tx.note(failpoint.TakeUp)
	ids, err := collect(uncancelled(), tx.Reader, one[int64], queryParkedIDs, chatJID, math.MaxInt64)
	for _, id := range ids {
		if err == nil {
			err = tx.UnmarkMessage(id, now)
		}
	}
	if err == nil {
		err = tx.exec(updateTakeUp, chatJID)
	}
	return err
}

// TakeUpRow makes one parked row undecided again. It returns ErrStale if the row is not
// parked.
func (tx *Tx) TakeUpRow(id int64) error {
	tx.note(failpoint.TakeUp)
	n, err := tx.change(updateTakeUpRow, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("take up row %d: %w", id, ErrStale)
	}
	return err
}

// DropParked drops the parked rows of a chat.
func (tx *Tx) DropParked(chatJID string, reason msg.Reason, now int64) error {
	tx.note(failpoint.Decide)
	ids, err := collect(uncancelled(), tx.Reader, one[int64], queryParkedIDs, chatJID, math.MaxInt64)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := tx.dropParked(id, reason, now); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) dropParked(id int64, reason msg.Reason, now int64) error {
	seq, err := tx.nextDecision()
	if err != nil {
		return err
	}
	if err = tx.exec(updateDropParked, reason, now, seq, id); err != nil {
		return err
	}
	if err := tx.UnmarkMessage(id, now); err != nil {
		return err
	}
	return tx.markDecided(id, reason.Shown().Mark, now)
}

// StopParked drops the parked rows of a thread of a chat below before, those of one sender or, with nil, of all.
func (tx *Tx) StopParked(chatJID, thread string, sender *string, before, now int64) error {
	chats, err := tx.stoppedChats(Stop{ChatJID: chatJID})
	if err != nil {
		return err
	}
	for _, jid := range chats {
		rows, err := tx.Parked(uncancelled(), jid, math.MaxInt64)
		if err != nil {
			return err
		}
		for _, m := range rows {
			if m.ID >= before || m.ThreadID != thread || sender != nil && m.Sender != *sender {
				continue
			}
			if err := tx.dropParked(m.ID, msg.ReasonStopped, now); err != nil {
				return err
			}
		}
	}
	return nil
}
