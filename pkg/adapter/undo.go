package adapter

import (
	"context"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// An answer has a button that takes its turn back until msg.UndoTime after the end of the turn, or until a newer answer
// stands below it. No row says when the button goes: the process remembers its messages, and reads at its start which
// answers were given lately. Removing one is tried for seconds; a user who presses it later reads that it is too old.

const (
	// maxUndoTries is how often the removal of a button is tried.
	maxUndoTries = 2
	// maxUndoAge is how old the answers may be whose buttons a start removes: an earlier process may not have done it.
	maxUndoAge = 2 * msg.UndoTime
)

// undoButton is the button under an answer.
type undoButton struct {
	lane  store.Lane
	row   int64 // the answer
	until int64 // unix ms
	tries int   // to remove it
}

// undoButtons are those that users see, at most one of each lane until it is due. It is safe for concurrent use.
type undoButtons struct {
	mu    sync.Mutex
	shown []undoButton
	news  chan struct{} // has a value when one may be due earlier
}

// add adds the button of an answer that was delivered. The older ones in its lane are due.
func (u *undoButtons) add(b undoButton) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.shown {
		switch other := &u.shown[i]; {
		case other.row == b.row:
			return
		case other.lane != b.lane:
		case other.row < b.row:
			other.until = 0
		default:
			b.until = 0
		}
	}
	u.shown = append(u.shown, b)
	signal(u.news)
}

// wait adds a button that was taken out, and is due again later.
func (u *undoButtons) wait(b undoButton) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.shown = append(u.shown, b)
}

// due takes out the button that is due first, if it is now; else wait is how long to wait.
func (u *undoButtons) due(now int64) (b undoButton, wait time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	wait = sweepInterval // the clock may be set
	for i := range u.shown {
		if b = u.shown[i]; b.until <= now {
			u.shown = slices.Delete(u.shown, i, i+1)
			return b, 0
		}
		wait = min(wait, until(b.until, now))
	}
	return undoButton{}, wait
}

// removeUndoButtons removes the buttons that are due, until ctx ends.
func (s *Shell) removeUndoButtons(ctx context.Context) {
	for ctx.Err() == nil {
		recent, err := rows.RecentAnswers(ctx, s.Store.Reader, s.Platform, s.Now().Add(-maxUndoAge).UnixMilli())
		if s.reads.Note(ctx, err) == nil {
			for _, a := range recent {
				s.undoButtons.add(undoButton{a.Lane, a.Row, a.UndoUntil, 0})
			}
			break
		}
		Pause(ctx, retryDelay)
	}
	for ctx.Err() == nil {
		b, wait := s.undoButtons.due(s.Now().UnixMilli())
		if wait > 0 {
			select {
			case <-ctx.Done():
			case <-s.undoButtons.news:
			case <-time.After(wait):
			}
			continue
		}
		if again := s.removeUndoButton(ctx, &b); again > 0 && b.tries < maxUndoTries {
			b.until = s.Now().Add(again).UnixMilli()
			s.undoButtons.wait(b)
		}
	}
}

// removeUndoButton removes a button, or returns the wait until the next try. Answers come first.
func (s *Shell) removeUndoButton(ctx context.Context, b *undoButton) (again time.Duration) {
	m, part, id, err := s.lastPart(ctx, b.row)
	switch {
	case s.reads.Note(ctx, err) != nil:
		return retryDelay
	case m == nil:
		return 0
	}
	unlock, free := s.lanes.tryLock(b.lane)
	if !free {
		return previewBusy
	}
	defer unlock()
	if !s.admission.mayCall(open) || !s.pacer.spare(b.lane) {
		return previewBusy
	}
	b.tries++
	err = func() (err error) {
		defer s.recoverPanic("removing a button", &err, "row", b.row)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
		defer cancel()
		return s.platform.(Undoer).RemoveUndo(ctx, m, part, id)
	}()
	if err == nil {
		return 0
	}
	f := failureOf(err)
	s.holdAccount(f)
	s.Log.Debug("button not removed", "row", b.row, "chat", m.ChatJID, "class", f.Class, "err",
		s.Redact(err.Error()))
	if f.Class == msg.Permanent {
		return 0
	}
	return max(f.After, previewRetry)
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
