package rows

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// halfAnswer is the row that keeps what users have seen of the answer of a turn that a /stop is going to cancel, and
// says who has stopped it; nil if they have seen nothing. It takes the place of the preview.
func halfAnswer(tx *store.Tx, s *Stop, t *msg.Turn, now int64) (*msg.Message, error) {
	if s.By == "" || t.State != msg.TurnRunning {
		return nil, nil
	}
	p, err := tx.Progress(store.Uncancelled(), t.ID)
	if err != nil || p == nil || strings.TrimSpace(p.Text) == "" {
		return nil, err
	}
	shown, err := tx.PreviewTurn(store.Uncancelled(), t.ID)
	if err != nil || shown == nil {
		return nil, err
	}
	replyTo := shown.ReplyTo
	if platform, _ := msg.SplitJID(t.ChatJID); platform != msg.PlatformWeb { // which has no previews to store
		if shown.Mode != store.PreviewText {
			return nil, nil
		}
		open, err := tx.LanePreviews(store.Uncancelled(), shown.Lane)
		if err != nil {
			return nil, err
		}
		seen := false
		for _, o := range open {
			if o.TurnID == t.ID && o.PlatformID != "" && !o.Ending {
				seen, replyTo = true, o.ReplyTo
			}
		}
		if !seen {
			return nil, nil
		}
	}
	by, err := tx.Message(store.Uncancelled(), s.BeforeMessage)
	if err != nil {
		return nil, err
	}
	name := s.By
	if by != nil {
		name = cmp.Or(by.SenderName, name)
	}
	text := strings.TrimSpace(p.Text)
	if strings.Count(text, "```")%2 == 1 { // it may end anywhere
		text += "\n```"
	}
	return &msg.Message{
		ChatJID: t.ChatJID, ThreadID: t.ThreadID, Topic: t.Topic, Direction: msg.Out, IsBot: true,
		Sender: msg.AgentSender(t.Folder), Content: text + "\n\n*Stopped by " + msg.EscapeLine(name) + ".*",
		ReplyToID: replyTo, TurnID: t.ID, Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice,
		OutState: store.OutStateOf(t.ChatJID),
	}, nil
}

// TakeBack applies an edit or a deletion to a message of an open turn. A queued turn is changed as if the message had
// been written so, or not at all; of a running one only the deletion of its last message is carried out, and cancels
// it. It returns the turn as it was, nil if it has ended; ErrStale if it is queued or running against b.Queued.
func TakeBack(tx *store.Tx, b msg.Takeback, now int64) (before *msg.Turn, err error) {
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
	rows, err := tx.TurnMessages(store.Uncancelled(), turn)
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
	for _, id := range rows {
		seq, err := tx.NextDecision()
		if err != nil {
			return err
		}
		if err = tx.Exec(updateWithdraw, reason, now, seq, id); err != nil {
			return err
		}
		if err = tx.Exec(deleteWantedTranscripts, id); err != nil {
			return err
		}
	}
	return nil
}

// refill makes a queued turn what its rows are by now. One without any is cancelled.
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
	return tx.Exec(updateJoin, store.Null(t.ReplyTo), t.TriggerMessageID, t.ClaimsEngagement, t.Surface, t.Ceiling,
		t.NotBefore, t.WaitsFor, t.RowCount, t.RowBytes, t.ID)
}

// cancelEmpty cancels a turn without messages. Its notes wait for the next one.
func cancelEmpty(tx *store.Tx, t *msg.Turn, reason msg.Reason, now int64) error {
	if err := tx.Exec(updateReleaseNotes, t.ID); err != nil {
		return err
	}
	pokeTyping(tx, t)
	return CancelTurn(tx, t.ID, reason, now)
}

// releaseNotes lets the notes of a turn that is queued again wait for the next turn of its place to begin. A turn of
// notes alone ends by that.
func releaseNotes(tx *store.Tx, id int64) error {
	n, err := tx.Change(updateReleaseNotes, id)
	if err != nil || n == 0 {
		return err
	}
	rows, err := tx.TurnMessages(store.Uncancelled(), id)
	if err != nil || len(rows) > 0 {
		return err
	}
	t, err := tx.Turn(store.Uncancelled(), id)
	if err != nil {
		return err
	}
	return cancelEmpty(tx, t, msg.ReasonEditNote, t.CreatedAt)
}

// PutNotes makes a turn of the notes that wait for the conversation of a running turn, and gives it to the turn's run.
// It returns nil if there are none, or a turn is queued that will have them, and ErrStale if the run takes no more.
func PutNotes(tx *store.Tx, of *msg.Turn, now int64) (*msg.Turn, error) {
	t := &msg.Turn{
		Kind: msg.Conversation, Folder: of.Folder, ChatJID: of.ChatJID, Topic: of.Topic, ThreadID: of.ThreadID,
		Place: of.Place, ReplyTo: of.ReplyTo, Surface: of.Surface, Ceiling: of.Ceiling, State: msg.TurnQueued,
		Depth: of.Depth, RootTurnID: of.RootTurnID, CreatedAt: now,
	}
	found, err := tx.Find([]any{&t.TriggerMessageID}, queryNote, t.ChatJID, t.Folder, t.ThreadID, t.Place)
	if err != nil || !found {
		return nil, err
	}
	later, err := store.First(tx.ReadTurns(store.Uncancelled(), queryNewestQueued, t.Lane(), t.ChatJID, t.Topic))
	if err != nil || later != nil && later.TriggerMessageID > t.TriggerMessageID { // its prompt has them, and in order
		return nil, err
	}
	if err = storeTurn(tx, t); err != nil {
		return nil, err
	}
	if err = TakeTurn(tx, t.ID, of.RunID, now); err != nil {
		return nil, err
	}
	return tx.Turn(store.Uncancelled(), t.ID)
}

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
	return store.Value[bool](ctx, r, queryWaits, turnID)
}

// HasMark reports whether the message of a turn has a mark.
func HasMark(ctx context.Context, r store.Reader, turnID int64) (bool, error) {
	mark, err := store.First(r.Messages(ctx, store.QueryMark, turnID))
	return mark != nil && !strings.HasPrefix(mark.Content, "-"), err
}
