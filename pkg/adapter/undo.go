package adapter

import (
	"context"
	"slices"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
)

// An answer has a button that takes its turn back until msg.UndoTime after the end of the turn. No row says when the
// button goes: the process looks at the answers whose time is over, at its start also at those of some minutes before.
// A user who presses a button that could not be removed reads that it is too old.

const (
	// undoInterval is how often buttons whose time is over are looked for.
	undoInterval = 5 * time.Second
	// maxUndoTries is how often the removal of a button is tried.
	maxUndoTries = 2
	// maxUndoAge is how old the answers may be whose buttons a start removes: an earlier process may not have done it.
	maxUndoAge = 2 * msg.UndoTime
)

// undoButton is a button that is to be removed.
type undoButton struct {
	rows.Answer

	tries     int
	notBefore int64 // of the next try, unix ms
}

// removeUndoButtons removes the buttons whose time is over, until ctx ends.
func (s *Shell) removeUndoButtons(ctx context.Context) {
	var buttons []*undoButton
	since := s.Now().Add(-maxUndoAge).UnixMilli()
	for ; ctx.Err() == nil; Pause(ctx, undoInterval) {
		until := s.Now().Add(-msg.UndoTime).UnixMilli()
		over, err := rows.RecentAnswers(ctx, s.Store.Reader, s.Platform, since, until)
		if s.reads.Note(ctx, err) != nil {
			continue
		}
		since = max(since, until)
		for _, a := range over {
			buttons = append(buttons, &undoButton{Answer: a})
		}
		buttons = slices.DeleteFunc(buttons, func(b *undoButton) bool {
			return ctx.Err() == nil && s.removeUndoButton(ctx, b)
		})
	}
}

// removeUndoButton removes a button, unless answers need the lane. done means that it is not to be called again. No
// edit of the answer is sent meanwhile: on some platforms the call repeats the text.
func (s *Shell) removeUndoButton(ctx context.Context, b *undoButton) (done bool) {
	if s.Now().UnixMilli() < b.notBefore {
		return false
	}
	unlock, free := s.lanes.tryLock(b.Lane)
	if !free {
		return false
	}
	defer unlock()
	m, part, id, err := s.lastPart(ctx, b.Row)
	switch {
	case s.reads.Note(ctx, err) != nil:
		return false
	case m == nil:
		return true
	case !s.admission.mayCall(open) || !s.pacer.spare(b.Lane):
		return false
	}
	b.tries++
	err = func() (err error) {
		defer s.recoverPanic("removing a button", &err, "row", b.Row)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
		defer cancel()
		return s.platform.(Undoer).RemoveUndo(ctx, m, part, id)
	}()
	if err == nil {
		return true
	}
	f := failureOf(err)
	s.holdAccount(f)
	s.Log.Debug("button not removed", "row", b.Row, "chat", m.ChatJID, "class", f.Class, "err", s.Redact(err.Error()))
	b.notBefore = s.Now().Add(f.After).UnixMilli()
	return f.Class == msg.Permanent || b.tries == maxUndoTries
}

// lastPart returns the last part of an answer, cut without a button, and its platform id. m is nil if there is nothing
// to take a button from: an edit has no buttons, for example.
func (s *Shell) lastPart(ctx context.Context, row int64) (m *msg.Message, part Part, id string, err error) {
	m, err = s.Store.Message(ctx, row)
	if err != nil || m == nil {
		return nil, nil, "", err
	}
	changes, err := s.Store.DerivedFrom(ctx, row)
	if err != nil || slices.ContainsFunc(changes, func(c *msg.Message) bool {
		return (c.Kind == msg.KindEdit || c.Kind == msg.KindDelete) && c.OutState != msg.OutFailed &&
			c.OutState != msg.OutCancelled
	}) {
		return nil, nil, "", err
	}
	m.Content = s.Redact(m.Content)
	cut, cutErr := s.callCut(m)
	parts, err := s.Store.Deliveries(ctx, row)
	last := len(parts) - 1
	if err != nil || cutErr != nil || last < 0 || len(cut) != len(parts) || parts[last].PlatformID == "" {
		return nil, nil, "", err
	}
	return m, cut[last], parts[last].PlatformID, nil
}
