package rows

import (
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// The states of a preview. Only open ones change.
const (
	PreviewOpen    store.PreviewState = "open"    // its message shows the progress of the turn, or is being made
	PreviewFinal   store.PreviewState = "final"   // its message is the first part of an answer
	PreviewRemoved store.PreviewState = "removed" // its message is deleted, or was never made
	// it may have a message that stays, since its id is not known or no longer valid
	PreviewLost store.PreviewState = "lost"
)

// WrittenBelow reports whether users have written below the message of a preview.
func WrittenBelow(ctx context.Context, r store.Reader, p *store.Preview) (bool, error) {
	return store.Value[bool](ctx, r, queryWrittenBelow, p.TurnID, p.Lane.ChatJID, p.Lane.ThreadID, p.CreatedAt)
}

// BeginPreview stores that the message of a preview is going to be made. It returns ErrStale if the turn has a preview
// or does not run, or if its lane has rows to deliver.
func BeginPreview(tx *store.Tx, turnID, now int64) (*store.Preview, error) {
	tx.Note(failpoint.BeginPreview)
	t, err := tx.PreviewTurn(store.Uncancelled(), turnID)
	if err != nil {
		return nil, err
	}
	if t == nil || t.Waiting {
		return nil, fmt.Errorf("preview of turn %d: %w", turnID, store.ErrStale)
	}
	shown, err := tx.LanePreviews(store.Uncancelled(), t.Lane)
	if err != nil {
		return nil, err
	}
	for _, p := range shown {
		if p.TurnID == turnID {
			return nil, fmt.Errorf("preview of turn %d: %w", turnID, store.ErrStale)
		}
	}
	p := &store.Preview{TurnID: t.ID, Lane: t.Lane, ReplyTo: t.ReplyTo, State: PreviewOpen, CreatedAt: now}
	p.ID, err = tx.Insert(insertPreview, p.TurnID, p.Lane.ChatJID, p.Lane.ThreadID, p.ReplyTo, p.State, now)
	return p, err
}

// KeepPreview stores the id of a preview's message. It returns ErrStale if the preview is not open, or its chat was
// moved meanwhile, where the id says nothing.
func KeepPreview(tx *store.Tx, p *store.Preview, platformID string, now int64) error {
	tx.Note(failpoint.KeepPreview)
	return changePreview(tx, p.ID, updateKeepPreview, platformID, now, p.ID, p.Lane.ChatJID)
}

// EndPreview stores the end of a preview, final excepted. It returns ErrStale if the preview is not open.
func EndPreview(tx *store.Tx, id int64, state store.PreviewState, now int64) error {
	tx.Note(failpoint.EndPreview)
	return changePreview(tx, id, updateEndPreview, state, now, id)
}

// OvertakePreview stores that an open preview must be removed.
func OvertakePreview(tx *store.Tx, id, now int64) error {
	return changePreview(tx, id, updateEndingPreview, now, id)
}

func changePreview(tx *store.Tx, id int64, query string, args ...any) error {
	n, err := tx.Change(query, args...)
	if err == nil && n == 0 {
		err = fmt.Errorf("preview %d: %w", id, store.ErrStale)
	}
	return err
}

// TakeOverPreview makes the message of an open preview the first part of an outbound row, which was claimed in the same
// transaction and has not been sent.
func TakeOverPreview(tx *store.Tx, p *store.Preview, messageID, now int64) error {
	if err := changePreview(tx, p.ID, updateEndPreview, PreviewFinal, now, p.ID); err != nil {
		return err
	}
	return tx.PutDelivery(store.Delivery{MessageID: messageID, State: msg.OutSending, PlatformID: p.PlatformID}, now)
}

// GiveUpPreview opens the preview of a turn again, to be removed: its message has not become an answer. It does nothing
// if no answer has taken over that message.
func GiveUpPreview(tx *store.Tx, turnID int64, platformID string, now int64) error {
	return tx.Exec(updateReopenPreview, now, turnID, platformID)
}
