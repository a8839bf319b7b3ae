package adapter

import (
	"context"
	"fmt"
	"slices"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxNotice is how long the answer to a press may be, in bytes: Telegram's limit.
const maxNotice = 200

// These answer presses that do not count: of a button whose question is not open, of one that stops a turn that has
// ended, and of one that takes a turn back.
const (
	closedNotice   = "This question is closed."
	copyNotice     = "This question was sent again: answer it there."
	finishedNotice = "Already finished."
	retriedNotice  = "Already retried."
	undoneNotice   = "Already taken back."
	othersNotice   = "Another user asked for this: only operators can take it back."
	oldUndoNotice  = "The button is too old: write %s."
)

// ReceivePress stores the press of a button of a question, or of one that stops a turn or takes it back, as
// ReceiveAlways does; its row has the verb answer and a msg.Press. It returns a notice for the user who pressed, "" if
// the press counts as far as is known by now, and gated runs. A press that does not count is also stored: gated
// decides, and the record shows who tried.
//
// A crash between sending a question and storing its message's id leaves a copy that nothing names. The press of one
// of its buttons does: if the question has ended, they are taken away then.
func (s *Shell) ReceivePress(ctx context.Context, in Inbound) (notice string, err error) {
	var copied *msg.Ask
	if err := s.Retry(ctx, "storing admins failed; retrying", func() error { // they may answer
		return s.Store.WriteIn(ctx, in.scope(s.Daemon), in.writeAdmins)
	}); err != nil {
		return "", err
	}
	for _, m := range in.Messages {
		if err := s.Retry(ctx, "reading question failed; retrying", func() (err error) {
			if notice, copied, err = s.examinePress(ctx, m); err == nil && notice == "" {
				notice, err = s.gatedNotice(ctx)
			}
			return err
		}); err != nil {
			return "", err
		}
	}
	if err := s.ReceiveAlways(ctx, in); err != nil {
		return "", err
	}
	if copied != nil {
		s.endCopy(ctx, copied, in.Messages[0].TargetID)
	}
	failpoint.At(failpoint.Pressed)
	return notice, nil
}

// endCopy takes the buttons of an ended question away from a message. The next press tries again if that fails.
func (s *Shell) endCopy(ctx context.Context, a *msg.Ask, platformID string) {
	err := s.Store.Write(ctx, func(tx *store.Tx) error { return rows.EndCopy(tx, a, platformID, s.Now().UnixMilli()) })
	if s.writes.Note(ctx, err) == nil {
		s.Log.Info("buttons of a copied question are removed", "row", a.MessageID)
	}
}

// examinePress judges a press as gated will, and adds to its row the text of the option and the place of the question.
// copied is the question, which has ended, if the message that was pressed has no row and may be a copy of it.
func (s *Shell) examinePress(ctx context.Context, m *msg.Message) (notice string, copied *msg.Ask, err error) {
	press, _ := msg.ParsePress(m.Content)
	if press.Stop > 0 {
		notice, err = s.examineStop(ctx, m, press.Stop)
		return notice, nil, err
	}
	if press.Undo > 0 {
		notice, err = s.examineUndo(ctx, m, press.Undo)
		return notice, nil, err
	}
	a, option, err := factrows.Pressed(ctx, s.Store.Reader, m)
	if err == nil && a == nil {
		return s.examineCopy(ctx, m, press)
	}
	if err == nil {
		err = factrows.AddAdmin(ctx, s.Store.Reader, m.ChatJID, m.Sender, a)
	}
	reason := a.Judge(m.Sender, m.IsBot, option, s.Now().UnixMilli())
	if err != nil || reason == msg.ReasonChoiceUnknown {
		return closedNotice, nil, err
	}
	row, err := s.Store.Message(ctx, a.MessageID)
	if err != nil || row == nil {
		return closedNotice, nil, err
	}
	press.Text = a.Options[option-1]
	m.Content, m.ThreadID, m.Topic = press.JSON(), row.ThreadID, row.Topic
	switch {
	case reason == msg.ReasonChoiceDenied:
		return agentproto.Truncate(a.Who.Only(), maxNotice), nil, nil
	case msg.IsRetry(a.AskID) && a.State != msg.AskOpen && a.EndedAt < a.ExpiresAt:
		return retriedNotice, nil, nil
	case a.State == msg.AskAnswered && a.AnsweredBy == m.Sender && a.Chosen() == press.Text: // pressed twice
		return "", nil, nil
	case reason == msg.ReasonChoiceLate:
		return closedNotice, nil, nil
	}
	return "", nil, nil
}

// examineCopy answers the press of a button that is about no question. If its message has no row, it may be a copy of
// the question that the button names. A preview has no row either, and no such button.
func (s *Shell) examineCopy(ctx context.Context, m *msg.Message, press msg.Press) (notice string, copied *msg.Ask,
	err error) {
	a, err := s.Store.Ask(ctx, press.Ask)
	if err != nil || a == nil || press.Option < 1 || press.Option > len(a.Options) {
		return closedNotice, nil, err
	}
	row, err := s.Store.Message(ctx, a.MessageID)
	if err != nil || row == nil || row.ChatJID != m.ChatJID {
		return closedNotice, nil, err
	}
	shown, err := s.Store.MessageByPlatformID(ctx, m.ChatJID, m.TargetID)
	if err != nil || shown != nil {
		return closedNotice, nil, err
	}
	preview, err := rows.ShownPreview(ctx, s.Store.Reader, m.ChatJID, m.TargetID)
	switch {
	case err != nil:
		return "", nil, err
	case a.Takes(s.Now().UnixMilli()):
		return copyNotice, nil, nil
	case preview != nil:
		return closedNotice, nil, nil
	}
	return closedNotice, a, nil
}

// examineStop adds to the row of a press that stops a turn the place of its preview. The message that was pressed must
// be that preview, and the turn must not have ended.
func (s *Shell) examineStop(ctx context.Context, m *msg.Message, turn int64) (notice string, err error) {
	shown, err := rows.ShownPreview(ctx, s.Store.Reader, m.ChatJID, m.TargetID)
	if err != nil || shown == nil || shown.TurnID != turn {
		return finishedNotice, err
	}
	m.ThreadID, m.Topic = shown.Lane.ThreadID, shown.Lane.ThreadID
	t, err := factrows.Stoppable(ctx, s.Store.Reader, m.ChatJID, turn)
	if err != nil || t == nil {
		return finishedNotice, err
	}
	return "", nil
}

// examineUndo adds to the row of a press that takes a turn back the place of its answer. The turn must have ended
// lately.
func (s *Shell) examineUndo(ctx context.Context, m *msg.Message, turn int64) (notice string, err error) {
	t, err := factrows.Undoable(ctx, s.Store.Reader, m.ChatJID, turn, s.Now().UnixMilli())
	if err != nil || t == nil {
		return fmt.Sprintf(oldUndoNotice, msg.CommandIn(m.ChatJID, msg.CommandUndo)), err
	}
	m.ThreadID, m.Topic = t.ThreadID, t.Place
	if t.UndoneAt != 0 {
		return undoneNotice, nil
	}
	asking, err := factrows.TurnMessages(ctx, s.Store.Reader, t.ID)
	if err == nil && !slices.ContainsFunc(asking, func(a *msg.Message) bool { return a.Payer() == m.Sender }) {
		return othersNotice, nil // gated knows whether the user is an operator
	}
	return "", err
}
