package undo

import (
	"context"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Files says what became of the files that a turn has changed. Paths are relative to the group's folder.
type Files struct {
	Restored   int
	Paths      []string // the first of those restored
	Changed    []string // they have changed since, so that they stay as they are
	NotCovered []string // the turn has changed them, and what they were is not kept
	Refused    bool     // none was restored, because of those that changed
	Unknown    bool     // nothing is known of what the turn has changed
}

// Outside is what was done, or not, before the rows are changed.
type Outside struct {
	Files   Files
	Problem string // why nothing could be restored, "" if it was
	Failed  bool   // because of an error in a program, after which anything may be restored
	Closed  int    // windows
	Open    int    // windows that could not be closed
	Next    NextSlot
}

// NextSlot returns when a reminder fires next after a time. Both are unix ms.
type NextSlot func(r *msg.Reminder, now int64) (int64, error)

// Restored reports whether the files are as they should be, but for those that are named.
func (o *Outside) Restored() bool { return !o.Failed && o.Problem == "" && !o.Files.Refused }

// TakenBack takes the place of messages that cannot be deleted.
const TakenBack = msg.TakenBack

// telegramDeletes is for how long bots may delete their messages on Telegram, in ms, with an hour to spare.
const telegramDeletes = 47 * int64(time.Hour/time.Millisecond)

// finishing changes the rows of one turn.
type finishing struct {
	tx   *store.Tx
	u    *rows.Undo
	turn *msg.Turn
	now  int64
	next NextSlot

	did, stays tally // what the answer says

	session string // what the topic's session is called before an undo
	stopped []*msg.Turn
}

// Finish carries out an open undo in the rows, and answers it. It returns the turns of other groups that it has
// cancelled, as they were, and store.ErrStale if the undo has ended.
func Finish(tx *store.Tx, u *rows.Undo, out Outside, zone *time.Location, now int64) (stopped []*msg.Turn, err error) {
	turn, err := tx.Turn(context.Background(), u.TurnID)
	if err != nil {
		return nil, err
	}
	f := &finishing{tx: tx, u: u, turn: turn, now: now, next: out.Next}
	refused := turn == nil || turn.State.IsOpen() || !out.Restored()
	if !refused {
		f.outside(&out)
		if err := f.change(zone); err != nil {
			return nil, err
		}
	}
	text, err := f.answer(out)
	if err != nil {
		return nil, err
	}
	if err := rows.EndUndo(tx, u, !refused, text, now); err != nil || turn == nil {
		return nil, err
	}
	return f.stopped, f.reply(text)
}

// change takes the turn back, or does it again.
func (f *finishing) change(zone *time.Location) (err error) {
	seen := func() error { return f.seen(zone) }
	steps := []func() error{f.reverseCalls, f.endObjects, f.takeBackMessages, f.endWork, f.setSession, seen}
	at := f.now
	if f.u.Redo {
		steps, at = []func() error{f.reverseCalls, f.repeatMessages, f.setSession}, 0
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return rows.MarkUndone(f.tx, f.turn.ID, at, f.session)
}

// reply answers the command, or where the turn has answered if it was asked for on a page.
func (f *finishing) reply(text string) error {
	m := &msg.Message{ChatJID: f.turn.ChatJID, ThreadID: f.turn.ThreadID, Topic: f.turn.Place}
	command, err := f.tx.Message(context.Background(), f.u.MessageID)
	if err != nil {
		return err
	}
	if command != nil {
		m.ChatJID, m.ThreadID, m.ReplyToID = command.ChatJID, command.ThreadID, command.PlatformID
		m.Topic = msg.Place(command.ThreadID, command.Topic)
	}
	if msg.NoUsers(m.ChatJID) {
		return nil
	}
	m.Direction, m.IsBot, m.Content, m.Source = msg.Out, true, text, msg.SourceCommand
	m.Timestamp, m.ReceivedAt, m.OutState = f.now, f.now, msg.OutStateOf(m.ChatJID)
	_, _, err = f.tx.PutMessage(m)
	return err
}

// takeBackMessages deletes what the agent has sent, and undoes its edits and reactions, the newest first.
func (f *finishing) takeBackMessages() error {
	all, err := rows.TurnOutbound(context.Background(), f.tx.Reader, f.turn.ID)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(all) {
		if err := f.takeBack(m); err != nil {
			return err
		}
	}
	return nil
}

func (f *finishing) takeBack(m *msg.Message) error {
	if gone, err := f.isGone(m); err != nil || gone {
		return err
	}
	withdrawn, err := rows.WithdrawOutbound(f.tx, m.ID)
	switch {
	case err != nil:
		return err
	case withdrawn || m.OutState == msg.OutFailed || m.OutState == msg.OutCancelled:
		return nil
	}
	if lost, err := f.tx.Unreachable(context.Background(), m); err != nil || lost != "" {
		f.stays.add("a message that " + lost)
		return err
	}
	switch m.Kind {
	case msg.KindReaction:
		return f.undoReaction(m)
	case msg.KindEdit:
		return f.undoEdit(m)
	case msg.KindDelete:
		return nil
	case msg.KindFile:
		f.stays.add("files that were sent, where they were saved:")
	}
	return f.remove(m)
}

// isGone reports whether a message of the turn was deleted before.
func (f *finishing) isGone(m *msg.Message) (bool, error) {
	change, err := factrows.LastChange(context.Background(), f.tx.Reader, m.ID, store.AllChanges)
	return change != nil && (change.Deleted || change.Content == TakenBack), err
}

// remove deletes a message of the bot or, where the platform does not allow that, empties it.
func (f *finishing) remove(m *msg.Message) error {
	if msg.FamilyOf(m.ChatJID) == "telegram" && f.now-m.Timestamp > telegramDeletes {
		if m.Kind != msg.KindMessage {
			f.stays.add("files and polls that are too old to be deleted:")
			return nil
		}
		f.did.add(lineEdited)
		return f.put(m, msg.KindEdit, TakenBack)
	}
	f.did.add(lineDeleted)
	return f.put(m, msg.KindDelete, "")
}

// put queues a change of a message.
func (f *finishing) put(m *msg.Message, kind msg.Kind, content string) error {
	change := &msg.Message{
		ChatJID: m.ChatJID, ThreadID: m.ThreadID, Topic: m.Topic, Direction: msg.Out, Kind: kind, IsBot: true,
		Sender: m.Sender, SenderName: m.SenderName, Content: content, DerivedFrom: m.ID, // in all its parts
		Source: msg.SourceNotice, Timestamp: f.now, ReceivedAt: f.now, OutState: msg.OutStateOf(m.ChatJID),
	}
	if kind == msg.KindReaction { // it is about another message
		change.TargetID, change.DerivedFrom = m.TargetID, m.DerivedFrom
	}
	_, _, err := f.tx.PutMessage(change)
	return err
}

func (f *finishing) undoReaction(m *msg.Message) error {
	emoji, removed := strings.CutPrefix(m.Content, "-")
	if !removed {
		emoji = "-" + emoji
	}
	return f.put(m, msg.KindReaction, emoji)
}

// undoEdit gives a message the text that it had before an edit, unless it is one of the turn, which is deleted.
func (f *finishing) undoEdit(edit *msg.Message) error {
	of, err := f.tx.Message(context.Background(), edit.DerivedFrom)
	if err != nil || of == nil || f.isOfTurn(of) {
		return err
	}
	text, err := rows.TextBefore(context.Background(), f.tx.Reader, edit)
	if err != nil {
		return err
	}
	if text == "" {
		f.stays.add("edits of messages that had no text:")
		return nil
	}
	f.did.add(lineEdited)
	return f.put(of, msg.KindEdit, text)
}

func (f *finishing) isOfTurn(m *msg.Message) bool { return m.TurnID == f.turn.ID }

// repeatMessages sends again what was deleted.
func (f *finishing) repeatMessages() error {
	all, err := rows.TurnOutbound(context.Background(), f.tx.Reader, f.turn.ID)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := f.repeat(m); err != nil {
			return err
		}
	}
	return nil
}

// repeat sends a message again that the undo has deleted or withdrawn, or gives it its text again.
func (f *finishing) repeat(m *msg.Message) error {
	change, err := factrows.LastChange(context.Background(), f.tx.Reader, m.ID, store.AllChanges)
	if err != nil {
		return err
	}
	if m.Kind.Changes() {
		f.stays.add("edits and reactions:")
		return nil
	}
	if change != nil && change.Content == TakenBack {
		f.did.add(lineEdited)
		return f.put(m, msg.KindEdit, m.Content)
	}
	copied, err := factrows.CopyOf(context.Background(), f.tx.Reader, m.ID)
	removed := m.Error == rows.WithdrawnByUndo || change != nil && change.Deleted
	switch {
	case err != nil || copied != 0 || !removed:
		return err
	case m.Kind == msg.KindPoll:
		f.stays.add("polls, which are not made again:")
		return nil
	}
	again := *m
	again.ID, again.PlatformID, again.ReplyToID, again.DerivedFrom, again.Error = 0, "", f.turn.ReplyTo, m.ID, ""
	again.Source, again.TurnID, again.OutState = msg.SourceReplay, f.turn.ID, msg.OutStateOf(m.ChatJID)
	again.Timestamp, again.ReceivedAt = f.now, f.now
	f.did.add("messages being sent again:")
	_, _, err = f.tx.PutMessage(&again)
	return err
}

// endWork cancels the work that the turn has given to groups.
func (f *finishing) endWork() (err error) {
	f.stopped, _, err = rows.StopChat(f.tx, rows.Stop{ChatJID: f.turn.ChatJID, Turn: f.turn.ID}, f.now)
	for range f.stopped {
		f.did.add("work of other groups stopped:")
	}
	return err
}

// setSession lets the topic's session go on from before the turn or, done again, from after it.
func (f *finishing) setSession() error {
	s, err := rows.SessionOf(context.Background(), f.tx.Reader, f.turn)
	if err != nil {
		return err
	}
	to := s.After
	if !f.u.Redo {
		to, f.session = f.earlier(s), s.Now
		if to == "" && s.Now != "" && s.Before != "" {
			f.did.add("the agent cannot go back in its session: it begins a new one with the last messages")
		}
	}
	return rows.SetSession(f.tx, f.turn.Folder, f.turn.Topic, s.Agent, to, f.now)
}

// earlier is what a session is called that goes on from before the turn, "" for a new one.
func (f *finishing) earlier(s rows.TurnSession) string {
	switch {
	case s.Now == "": // it was reset or lost since
		return ""
	case s.Before != s.Now:
		return s.Before
	case f.turn.State == msg.TurnDone || !strings.Contains(s.Now, "@"): // all turns have the same name
		return ""
	}
	return strings.TrimSuffix(s.Now, agentproto.RewindSuffix) + agentproto.RewindSuffix
}
