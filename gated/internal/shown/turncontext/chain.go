package turncontext

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// maxChain is how far a reply chain is followed.
const maxChain = 20

// chain is the messages that the rows of a turn reply to, oldest first.
type chain struct {
	rows   []*msg.Message
	rowIDs map[string]int64 // row ids by platform id, of the chain and of the turn's rows
	seen   map[int64]bool
}

// replyChain follows the replies of a turn's rows, as they were when the newest of them was
// stored. In the first prompt of a fork it begins with the message that the fork corrects.
// It leaves out deleted messages, and follows no chain beyond a message that was shown.
func (r Reader) replyChain(ctx context.Context, q *Request, batch []*msg.Message) (chain, error) {
	c := chain{rowIDs: map[string]int64{}, seen: map[int64]bool{}}
	for _, m := range batch {
		c.seen[m.ID] = true
		if m.PlatformID != "" {
			c.rowIDs[m.PlatformID] = m.ID
		}
	}
	upto := newest(batch)
	if q.NewSession {
		m, err := r.forked(ctx, q.Turn)
		if err != nil {
			return c, err
		}
		if m != nil {
			if err := r.follow(ctx, &c, m.ChatJID, m.PlatformID, upto, q.Shown.Rows); err != nil {
				return c, err
			}
		}
	}
	for _, m := range batch {
		err := errors.Join(r.follow(ctx, &c, m.ChatJID, m.ReplyToID, upto, q.Shown.Rows),
			r.follow(ctx, &c, m.ChatJID, m.TargetID, upto, q.Shown.Rows))
		if err != nil {
			return c, err
		}
	}
	slices.SortFunc(c.rows, func(a, b *msg.Message) int { return cmp.Compare(a.ID, b.ID) })
	c.rows = bound(c.rows)
	return c, nil
}

// follow adds the message with a platform id, and those before it.
func (r Reader) follow(ctx context.Context, c *chain, chatJID, platformID string, upto int64,
	shown map[int64]bool) error {
	for range maxChain {
		if platformID == "" || c.rowIDs[platformID] != 0 {
			return nil
		}
		m, err := r.Store.MessageByPlatformID(ctx, chatJID, platformID)
		if err != nil || m == nil {
			return err
		}
		c.rowIDs[platformID] = m.ID
		if c.seen[m.ID] || shown[m.ID] {
			return nil
		}
		c.seen[m.ID] = true
		if err := r.addChanged(ctx, c, m, upto); err != nil {
			return err
		}
		platformID = m.ReplyToID
	}
	return nil
}

// forked is the message at which the fork that a turn runs in begins; nil if the turn's
// topic is no fork.
func (r Reader) forked(ctx context.Context, t *msg.Turn) (*msg.Message, error) {
	fork, err := r.Store.Fork(ctx, t.ChatJID, t.Topic)
	if err != nil || fork == nil || fork.Folder != t.Folder {
		return nil, err
	}
	return r.Store.Message(ctx, fork.MessageID)
}

// addChanged adds a row to the chain as its last edit left it, unless it was deleted, or its turn was taken back.
func (r Reader) addChanged(ctx context.Context, c *chain, m *msg.Message, upto int64) error {
	if undone, err := rows.TakenBack(ctx, r.Store, m.ID); err != nil || undone {
		return err
	}
	change, err := factrows.LastChange(ctx, r.Store, m.ID, upto)
	switch {
	case err != nil:
		return err
	case change == nil:
	case change.Deleted:
		return nil
	default:
		m.Content = change.Content
	}
	m.Content = msg.ContentText(m.Kind, m.Content)
	c.rows = append(c.rows, m)
	return nil
}
