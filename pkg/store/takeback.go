package store

import (
	"cmp"
	"fmt"
	"math"

	"arizuko/pkg/msg"
)

// TakeBack applies an edit or a deletion to a message of an open turn. A queued turn is changed as if the message had
// been written so, or not at all; of a running one only the deletion of its last message is carried out, and cancels it.
// It returns the turn as it was, nil if it has ended; ErrStale if it is queued or running against b.Queued.
func (tx *Tx) TakeBack(b msg.Takeback, now int64) (before *msg.Turn, err error) {
	t, err := tx.Turn(uncancelled(), b.Turn)
	if err != nil || t == nil {
		return nil, err
	}
	if (t.State == msg.TurnQueued) != b.Queued {
		if !t.State.IsOpen() && !b.Queued {
			return nil, nil
		}
		return nil, fmt.Errorf("change turn %d, which is %s: %w", t.ID, t.State, ErrStale)
	}
	was := *t
	if !b.Queued {
		if t.State != msg.TurnRunning {
			return nil, nil
		}
		rows, err := tx.undeleted(t.ID)
		if err == nil && b.Deletes && len(rows) == 0 {
			err = tx.cancelEmpty(t, msg.ReasonDeleted, now)
		}
		return &was, err
	}
	if err = tx.exec(updateTurnNotes, t.ID, b.TargetID); err != nil {
		return nil, err
	}
	if err = tx.SupersedeNotes(t.ChatJID, b.TargetID); err != nil {
		return nil, err
	}
	reason := msg.ReasonEditApplied
	switch {
	case b.Deletes:
		reason = msg.ReasonDeleted
		err = tx.withdraw(reason, now, b.Subject, b.Target)
	case b.Again:
		if err = tx.withdraw(reason, now, b.Subject); err == nil {
			err = tx.exec(updateUndecide, b.Target)
		}
		if err == nil {
			err = tx.ReplaceContent(b.Target, b.Content, b.Addressed, b.Verb)
		}
	default:
		for _, c := range []struct {
			id   int64
			text string
		}{{b.Target, b.Content}, {b.Subject, b.Text}} {
			if err == nil {
				err = tx.exec(updateTurnContent, cut(cleanText(c.text), maxContent), b.Addressed, b.Verb, c.id)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return &was, tx.refill(t, reason, now)
}

// undeleted returns the messages of a turn without those that were deleted after an agent had begun it.
func (tx *Tx) undeleted(turn int64) (left []*msg.Message, err error) {
	rows, err := tx.TurnMessages(uncancelled(), turn)
	for _, m := range rows {
		if m.Reason == msg.ReasonEditNote {
			continue
		}
		post := m.PlatformID
		switch {
		case m.Verb == msg.VerbEdit:
			post = m.TargetID
		case post == "" && m.DerivedFrom != 0:
			made, err := tx.Message(uncancelled(), m.DerivedFrom)
			if err != nil {
				return nil, err
			}
			if made != nil {
				post = made.PlatformID
			}
		}
		if deleted, err := tx.Deleted(uncancelled(), m.ChatJID, post, math.MaxInt64); err != nil {
			return nil, err
		} else if !deleted {
			left = append(left, m)
		}
	}
	return left, err
}

// withdraw takes rows of a message out of its turn, which then waits for none of their files and transcripts.
func (tx *Tx) withdraw(reason msg.Reason, now int64, rows ...int64) error {
	for _, id := range rows {
		seq, err := tx.nextDecision()
		if err != nil {
			return err
		}
		if err = tx.exec(updateWithdraw, reason, now, seq, id); err != nil {
			return err
		}
		if err = tx.exec(deleteWantedTranscripts, id); err != nil {
			return err
		}
	}
	return nil
}

// refill makes a queued turn what its rows are by now. One without any is cancelled.
func (tx *Tx) refill(t *msg.Turn, reason msg.Reason, now int64) error {
	rows, err := tx.undeleted(t.ID)
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
		return tx.cancelEmpty(t, reason, now)
	}
	if t.RowCount > 0 {
		t.RowCount, t.RowBytes = count, bytes
	}
	if t.TriggerMessageID != trigger.ID {
		t.TriggerMessageID = trigger.ID
		if trigger.PlatformID == "" && trigger.DerivedFrom != 0 {
			if made, err := tx.Message(uncancelled(), trigger.DerivedFrom); err != nil {
				return err
			} else if made != nil {
				trigger.PlatformID = made.PlatformID
			}
		}
		t.ReplyTo = cmp.Or(trigger.PlatformID, t.ReplyTo)
	}
	return tx.exec(updateJoin, null(t.ReplyTo), t.TriggerMessageID, t.ClaimsEngagement, t.Surface, t.Ceiling,
		t.NotBefore, t.WaitsFor, t.RowCount, t.RowBytes, t.ID)
}

// cancelEmpty cancels a turn without messages. Its notes wait for the next one.
func (tx *Tx) cancelEmpty(t *msg.Turn, reason msg.Reason, now int64) error {
	if err := tx.exec(updateReleaseNotes, t.ID); err != nil {
		return err
	}
	tx.pokeTyping(t)
	return tx.CancelTurn(t.ID, reason, now)
}

// releaseNotes lets the notes of a turn that is queued again wait for the next turn of its place to begin. A turn of
// notes alone ends by that.
func (tx *Tx) releaseNotes(id int64) error {
	n, err := tx.change(updateReleaseNotes, id)
	if err != nil || n == 0 {
		return err
	}
	rows, err := tx.TurnMessages(uncancelled(), id)
	if err != nil || len(rows) > 0 {
		return err
	}
	t, err := tx.Turn(uncancelled(), id)
	if err != nil {
		return err
	}
	return tx.cancelEmpty(t, msg.ReasonEditNote, t.CreatedAt)
}

// PutNotes makes a turn of the notes that wait for the conversation of a running turn, and gives it to the turn's run. It
// returns nil if there are none, or a turn is queued that will have them, and ErrStale if the run takes no more.
func (tx *Tx) PutNotes(of *msg.Turn, now int64) (*msg.Turn, error) {
	t := &msg.Turn{
		Kind: msg.Conversation, Folder: of.Folder, ChatJID: of.ChatJID, Topic: of.Topic, ThreadID: of.ThreadID,
		Place: of.Place, ReplyTo: of.ReplyTo, Surface: of.Surface, Ceiling: of.Ceiling, State: msg.TurnQueued,
		Depth: of.Depth, RootTurnID: of.RootTurnID, CreatedAt: now,
	}
	found, err := tx.find([]any{&t.TriggerMessageID}, queryNote, t.ChatJID, t.Folder, t.ThreadID, t.Place)
	if err != nil || !found {
		return nil, err
	}
	later, err := first(tx.queryTurns(uncancelled(), queryNewestQueued, t.Lane(), t.ChatJID, t.Topic))
	if err != nil || later != nil && later.TriggerMessageID > t.TriggerMessageID { // its prompt has them, and in order
		return nil, err
	}
	if err = tx.insertTurn(t); err != nil {
		return nil, err
	}
	if err = tx.TakeTurn(t.ID, of.RunID, now); err != nil {
		return nil, err
	}
	return tx.Turn(uncancelled(), t.ID)
}
