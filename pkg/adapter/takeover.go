package adapter

import (
	"context"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// The first part of an answer takes over the message of its turn's preview: in the transaction that claims the row, the
// preview becomes final and the part gets the message's platform id, while it is not sent yet. Such a part is sent
// as an edit of that message, after a crash once more. If the edit fails, the part loses the id in the rows first; then
// it is a message of its own, as if there had been no preview, and the preview is removed. The same happens where users
// would miss the edit: no platform notifies them of edits.

// maxTakeOver is how old a preview may be that becomes the answer: a user who has waited longer looks elsewhere.
const maxTakeOver = time.Minute

// takeOver lets the row that is being claimed take over a preview. All other previews of its lane, which would stand
// above the row, must be removed.
func (d *delivery) takeOver(tx *store.Tx) error {
	if d.shell.previewer == nil || d.lane.Decorations {
		return nil
	}
	shown, err := rows.LanePreviews(context.Background(), tx.Reader, d.lane.Lane)
	for i := range shown {
		p, below := &shown[i], false
		if p.Ending || err != nil {
			continue
		}
		takes := d.takesOver(p)
		if takes {
			below, err = rows.WrittenBelow(context.Background(), tx.Reader, p)
		}
		switch {
		case err != nil:
		case takes && !below:
			err = rows.TakeOverPreview(tx, p, d.row.ID, d.nowMS())
		default:
			err = rows.OvertakePreview(tx, p.ID, d.nowMS())
			d.overtakes = true
		}
	}
	return err
}

// takesOver reports whether the row takes over a preview. A question does not: its message has buttons.
func (d *delivery) takesOver(p *rows.Preview) bool {
	if d.renderErr != nil || len(d.cut) == 0 || p.PlatformID == "" || d.row.Ask != nil ||
		d.nowMS()-p.CreatedAt > maxTakeOver.Milliseconds() ||
		d.row.Kind != msg.KindMessage || d.row.TurnID != p.TurnID || d.row.ReplyToID != p.ReplyTo {
		return false
	}
	_, ok := d.shell.previewer.TakeOver(d.cut[0], p.PlatformID)
	return ok
}

// editPreview makes the first part the edit of the message that it has taken over. If that cannot be, as after the chat
// was moved, the part is a message of its own.
func (d *delivery) editPreview() {
	if d.shell.previewer == nil || len(d.parts) == 0 || !isOpen(d.parts[0]) || d.parts[0].PlatformID == "" {
		return
	}
	if edit, ok := d.shell.previewer.TakeOver(d.cut[0], d.parts[0].PlatformID); ok {
		d.cut[0], d.takenOver = edit, d.parts[0].PlatformID
		return
	}
	d.parts[0].PlatformID = ""
}

// afterTakeOver is a part after it was sent, or given up. One that has taken over a preview in vain loses it, and is
// sent as a message of its own if the platform has not carried out the edit, or does not say so.
func (d *delivery) afterTakeOver(ctx context.Context, p store.Delivery, sendErr error) store.Delivery {
	d.takenOver = ""
	if p.Part != 0 || p.PlatformID == "" || p.State != msg.OutQueued && p.State != msg.OutFailed {
		return p
	}
	chat, err := d.shell.Store.Address(context.WithoutCancel(ctx), d.row.ChatJID)
	moved := err == nil && chat != d.row.ChatJID // ids of its messages are no longer valid
	switch {
	case sendErr != nil && failureOf(sendErr).unsent() && !moved:
		return p // the edit is tried again, once the platform can be reached
	case sendErr != nil && !moved && p.ErrorClass != msg.Expired:
		d.shell.Log.Warn("the preview cannot become the answer, which is sent as a message of its own", "row", d.row.ID,
			"chat", d.row.ChatJID, "err", p.Error)
		p = store.Delivery{MessageID: p.MessageID, PlatformID: p.PlatformID, State: msg.OutQueued, Attempts: p.Attempts}
	}
	if !moved {
		d.givenUp = p.PlatformID
	}
	p.PlatformID = ""
	return p
}
