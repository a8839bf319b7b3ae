package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// AskOfTarget returns the question that the message of a platform id shows in a chat, nil if it shows none.
func AskOfTarget(ctx context.Context, r store.Reader, chatJID, platformID string) (*msg.Ask, error) {
	if platformID == "" {
		return nil, nil
	}
	m, err := r.MessageByPlatformID(ctx, chatJID, platformID)
	if err != nil || m == nil || m.Direction != msg.Out {
		return nil, err
	}
	return r.AskOfMessage(ctx, m.ID)
}

// AskBeingSent returns a question whose message in a chat has no id yet, since its adapter is sending it, nil for any
// other.
func AskBeingSent(ctx context.Context, r store.Reader, id int64, chatJID string) (*msg.Ask, error) {
	a, err := r.Ask(ctx, id)
	if err != nil || a == nil {
		return nil, err
	}
	row, err := r.Message(ctx, a.MessageID)
	if err != nil || row == nil || row.ChatJID != chatJID ||
		row.OutState != msg.OutSending && row.OutState != msg.OutQueued {
		return nil, err
	}
	return a, nil
}

// Pressed returns the question that a press is about, and the number of the chosen option; nil if it is about no
// question of its chat. Users may forge what a button carries, and a button may stand on a copy of the message: the
// question's own message must be in this chat and, once its id is known, the one that was pressed.
func Pressed(ctx context.Context, r store.Reader, m *msg.Message) (a *msg.Ask, option int, err error) {
	press, ok := msg.ParsePress(m.Content)
	var early *msg.Ask
	if ok {
		if early, err = AskBeingSent(ctx, r, press.Ask, m.ChatJID); err != nil {
			return nil, 0, err
		}
	}
	// Read after it: an id that is stored in between is found.
	shown, err := AskOfTarget(ctx, r, m.ChatJID, m.TargetID)
	switch {
	case err != nil:
		return nil, 0, err
	case !ok: // by a foreign adapter
		if shown != nil {
			option, _ = shown.Number(m.Content)
		}
		return shown, option, nil
	case shown == nil && early != nil && m.TargetID != "":
		// It was pressed before the adapter has stored the id of the message, unless this is the id of another one.
		row, err := r.MessageByPlatformID(ctx, m.ChatJID, m.TargetID)
		if err != nil || row != nil && row.ID != early.MessageID {
			return nil, 0, err
		}
		return early, press.Option, nil
	case shown != nil && shown.ID != press.Ask:
		return nil, 0, nil
	}
	return shown, press.Option, nil
}

// Undoable returns the turn that the Undo button of a chat names, nil if it can't be taken back from there at a time, in
// unix ms. A turn that is taken back already is returned, too.
func Undoable(ctx context.Context, r store.Reader, chatJID string, id, now int64) (*msg.Turn, error) {
	t, err := r.Turn(ctx, id)
	if err != nil || t == nil || t.ChatJID != chatJID || t.State != msg.TurnDone ||
		now-t.EndedAt > msg.UndoTime.Milliseconds() {
		return nil, err
	}
	return t, nil
}

// Stoppable returns the turn that the Stop button of a chat names, nil if it can no longer be stopped from there: users
// may forge what a button carries.
func Stoppable(ctx context.Context, r store.Reader, chatJID string, id int64) (*msg.Turn, error) {
	t, err := r.Turn(ctx, id)
	if err != nil || t == nil || t.ChatJID != chatJID || !t.State.IsOpen() {
		return nil, err
	}
	return t, nil
}
