package store

import (
	"context"
	"strings"

	"arizuko/pkg/msg"
)

// The reactions of a turn's message. Telegram has them in its fixed set.
const (
	waitingMark    = "👀" // it waits for its agent
	unansweredMark = "🤷" // its turn failed, and the chat got no notice of it
)

// MarkWaiting lets the sender of the message that a turn answers see that it waits, by a reaction on the message. It
// does nothing, and returns false, for a turn that an agent has begun or that has its mark, and where the platform has
// no reactions: telegram, discord, slack and the web chat have some.
func (tx *Tx) MarkWaiting(turnID, now int64) (marked bool, err error) {
	t, err := tx.Turn(uncancelled(), turnID)
	if err != nil || t == nil || t.Kind != msg.Conversation || t.WorksForGroup() {
		return false, err
	}
	waits, err := tx.Waits(uncancelled(), turnID)
	if err != nil || !waits {
		return false, err
	}
	if mark, err := tx.mark(turnID); err != nil || mark != nil {
		return false, err
	}
	return tx.markTurn(t, waitingMark, now)
}

// MarkUnanswered lets the sender see that a turn failed of which the chat gets no notice. The mark goes when the turn is
// retried.
func (tx *Tx) MarkUnanswered(t *msg.Turn, now int64) error {
	if t.Kind != msg.Conversation || t.WorksForGroup() {
		return nil
	}
	_, err := tx.markTurn(t, unansweredMark, now)
	return err
}

// markTurn returns false where the platform has no reactions.
func (tx *Tx) markTurn(t *msg.Turn, mark string, now int64) (marked bool, err error) {
	of, err := tx.markable(t)
	if err != nil || of == nil {
		return false, err
	}
	return true, tx.putMark(t.ID, of.ChatJID, of.ThreadID, of.Topic, of.PlatformID, mark, now)
}

// Waits reports whether a turn is open and no agent works on it: it is queued, or its run has an older one and has said
// nothing of this one.
func (r Reader) Waits(ctx context.Context, turnID int64) (waits bool, err error) {
	_, err = r.q.get(ctx, []any{&waits}, queryWaits, turnID)
	return waits, err
}

// markable is the message of a turn that can have a reaction, nil if there is none.
func (tx *Tx) markable(t *msg.Turn) (*msg.Message, error) {
	switch msg.FamilyOf(t.ChatJID) {
	case "telegram", "discord", "slack", msg.PlatformWeb:
	default:
		return nil, nil
	}
	m, err := tx.Message(uncancelled(), t.TriggerMessageID)
	if err != nil || m == nil {
		return nil, err
	}
	if m.PlatformID == "" && m.DerivedFrom != 0 { // #name or @name was cut off
		if m, err = tx.Message(uncancelled(), m.DerivedFrom); err != nil || m == nil {
			return nil, err
		}
	}
	switch {
	case m.PlatformID == "" || m.ChatJID != t.ChatJID:
		return nil, nil
	case m.Verb != msg.VerbMessage && m.Verb != msg.VerbMention && m.Verb != msg.VerbReply:
		return nil, nil
	}
	return m, nil
}

// mark returns the newest row about the mark of a turn's message, nil if there is none.
func (tx *Tx) mark(turnID int64) (*msg.Message, error) {
	return first(tx.messages(uncancelled(), queryMark, turnID))
}

// HasMark reports whether the message of a turn has a mark.
func (r Reader) HasMark(ctx context.Context, turnID int64) (bool, error) {
	mark, err := first(r.messages(ctx, queryMark, turnID))
	return mark != nil && !strings.HasPrefix(mark.Content, "-"), err
}

// Unmark takes the mark of a turn's message away, if it has one. One that was not sent yet is cancelled. Where
// the agent has reacted to the message meanwhile, and the platform shows one reaction of the bot, that one stays.
func (tx *Tx) Unmark(turnID, now int64) error {
	mark, err := tx.mark(turnID)
	if err != nil || mark == nil || strings.HasPrefix(mark.Content, "-") {
		return err
	}
	switch mark.OutState {
	case msg.OutQueued:
		_, err = tx.exec(updateCancelMark, mark.ID)
		return err
	case msg.OutCancelled, msg.OutFailed:
		return nil
	}
	replaced := false
	if msg.FamilyOf(mark.ChatJID) == "telegram" {
		if _, err = tx.get([]any{&replaced}, queryReacted, turnID, mark.TargetID, mark.ID); err != nil || replaced {
			return err
		}
	}
	return tx.putMark(turnID, mark.ChatJID, mark.ThreadID, mark.Topic, mark.TargetID, "-"+mark.Content, now)
}

// putMark does nothing on a message that the platform no longer knows.
func (tx *Tx) putMark(turnID int64, jid, thread, topic, target, content string, now int64) error {
	lost, err := tx.Unreachable(uncancelled(), &msg.Message{ChatJID: jid, PlatformID: target})
	if err != nil || lost != "" {
		return err
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: jid, Direction: msg.Out, Kind: msg.KindReaction, IsBot: true, Content: content, TargetID: target,
		ThreadID: thread, Topic: topic,
		TurnID: turnID, Source: msg.SourceWaiting, Timestamp: now, ReceivedAt: now, OutState: OutStateOf(jid),
	})
	return err
}
