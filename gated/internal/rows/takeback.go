package rows

import (
	"cmp"
	"fmt"
	"math"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// TakeBack applies an edit or a deletion to a message of an open turn. A queued turn is changed as if the message had
// been written so, or not at all; of a running one only the deletion of its last message is carried out, and cancels
// it. It returns the turn as it was, nil if it has ended; ErrStale if it is queued or running against b.Queued.
func TakeBack(tx *store.Tx, b msg.Takeback, now int64) (before *msg.Turn, err error) {
	const updateTurnNotes = `UPDATE messages SET turn_id = NULL, reason = 'edit_superseded' WHERE turn_id = ? AND reason = 'edit_note' AND target_id = ?`
	const updateTurnContent = `UPDATE messages SET content = ?, addressed = ?, verb = ? WHERE id = ?`
	const updateUndecide = `UPDATE messages SET disposition = NULL, reason = NULL, routed_to = NULL, turn_id = NULL, decided_at = NULL, decision_seq = NULL WHERE id = ?`
	t, err := tx.Turn(store.Uncancelled(), b.Turn)
	if err != nil || t == nil {
		return nil, err
	}
	if (t.State == msg.TurnQueued) != b.Queued {
		if !t.State.IsOpen() && !b.Queued {
			return nil, nil
		}
		return nil, fmt.Errorf("change turn %d, which is %s: %w", t.ID, t.State, store.ErrStale)
	}
	was := *t
	if !b.Queued {
		if t.State != msg.TurnRunning {
			return nil, nil
		}
		rows, err := undeleted(tx, t.ID)
		if err == nil && b.Deletes && len(rows) == 0 {
			err = cancelEmpty(tx, t, msg.ReasonDeleted, now)
		}
		return &was, err
	}
	if err = tx.Exec(updateTurnNotes, t.ID, b.TargetID); err != nil {
		return nil, err
	}
	if err = SupersedeNotes(tx, t.ChatJID, b.TargetID); err != nil {
		return nil, err
	}
	reason := msg.ReasonEditApplied
	switch {
	case b.Deletes:
		reason = msg.ReasonDeleted
		err = withdraw(tx, reason, now, b.Subject, b.Target)
	case b.Again:
		if err = withdraw(tx, reason, now, b.Subject); err == nil {
			err = tx.Exec(updateUndecide, b.Target)
		}
		if err == nil {
			err = ReplaceContent(tx, b.Target, b.Content, b.Addressed, b.Verb)
		}
	default:
		for _, c := range []struct {
			id   int64
			text string
		}{{b.Target, b.Content}, {b.Subject, b.Text}} {
			if err == nil {
				err = tx.Exec(updateTurnContent, store.Cut(store.CleanText(c.text), store.MaxContent), b.Addressed,
					b.Verb, c.id)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return &was, refill(tx, t, reason, now)
}

// undeleted returns the messages of a turn without those that were deleted after an agent had begun it.
func undeleted(tx *store.Tx, turn int64) (left []*msg.Message, err error) {
	rows, err := factrows.TurnMessages(store.Uncancelled(), tx.Reader, turn)
	for _, m := range rows {
		if m.Reason == msg.ReasonEditNote {
			continue
		}
		post := m.PlatformID
		switch {
		case m.Verb == msg.VerbEdit:
			post = m.TargetID
		case post == "" && m.DerivedFrom != 0:
			made, err := tx.Message(store.Uncancelled(), m.DerivedFrom)
			if err != nil {
				return nil, err
			}
			if made != nil {
				post = made.PlatformID
			}
		}
		if deleted, err := Deleted(store.Uncancelled(), tx.Reader, m.ChatJID, post, math.MaxInt64); err != nil {
			return nil, err
		} else if !deleted {
			left = append(left, m)
		}
	}
	return left, err
}

// withdraw takes rows of a message out of its turn, which then waits for none of their files and transcripts.
func withdraw(tx *store.Tx, reason msg.Reason, now int64, rows ...int64) error {
	const query = `UPDATE messages SET disposition = 'dropped', reason = ?, routed_to = NULL, turn_id = NULL, files_wanted = 0, decided_at = ?, decision_seq = ` + store.DecisionNumber + ` WHERE id = ?`
	for _, id := range rows {
		if err := tx.NumberDecision(); err != nil {
			return err
		}
		if err := tx.Exec(query, reason, now, id); err != nil {
			return err
		}
		if err := tx.Exec(`DELETE FROM transcripts WHERE message_id = ? AND state = 'wanted'`, id); err != nil {
			return err
		}
	}
	return nil
}

// refill brings a queued turn in line with its rows. One without any is cancelled.
func refill(tx *store.Tx, t *msg.Turn, reason msg.Reason, now int64) error {
	rows, err := undeleted(tx, t.ID)
	if err != nil {
		return err
	}
	var trigger *msg.Message // the last that calls the bot, else the last
	calls := func(m *msg.Message) bool { return m.Verb == msg.VerbMention || m.Verb == msg.VerbReply }
	count, bytes := 0, 0
	for _, m := range rows {
		count, bytes = count+1, bytes+len(m.Content)
		if trigger == nil || calls(m) || !calls(trigger) {
			trigger = m
		}
	}
	if trigger == nil {
		return cancelEmpty(tx, t, reason, now)
	}
	if t.RowCount > 0 {
		t.RowCount, t.RowBytes = count, bytes
	}
	if t.TriggerMessageID != trigger.ID {
		t.TriggerMessageID = trigger.ID
		if trigger.PlatformID == "" && trigger.DerivedFrom != 0 {
			if made, err := tx.Message(store.Uncancelled(), trigger.DerivedFrom); err != nil {
				return err
			} else if made != nil {
				trigger.PlatformID = made.PlatformID
			}
		}
		t.ReplyTo = cmp.Or(trigger.PlatformID, t.ReplyTo)
	}
	return updateQueued(tx, t)
}
