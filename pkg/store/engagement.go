package store

import (
	"context"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const engagementColumns = `jid, topic, ifnull(engaged_folder,''), ifnull(engaged_until,0), engaged_at,
	ifnull(last_reply_id,0), ifnull(ended_at,0)`

func scanEngagement(scan scanner) (*msg.Engagement, error) {
	var e msg.Engagement
	err := scan(&e.ChatJID, &e.Place, &e.Folder, &e.Until, &e.At, &e.LastReply, &e.EndedAt)
	return &e, err
}

// Engagement returns the engagement of a place of a chat; if none is stored, one
// with the address alone.
func (r Reader) Engagement(ctx context.Context, chatJID, place string) (msg.Engagement, error) {
	e, err := first(collect(ctx, r.q, scanEngagement,
		`SELECT `+engagementColumns+` FROM chat_reply_state WHERE jid = ? AND topic = ?`, chatJID, place))
	if e == nil {
		e = &msg.Engagement{ChatJID: chatJID, Place: place}
	}
	return *e, err
}

// Engagements returns the engagement of every place of a chat that has one stored.
func (r Reader) Engagements(ctx context.Context, chatJID string) ([]*msg.Engagement, error) {
	return collect(ctx, r.q, scanEngagement,
		`SELECT `+engagementColumns+` FROM chat_reply_state WHERE jid = ? ORDER BY topic`, chatJID)
}

// PutEngagement stores a place's window, or that none is open.
func (tx *Tx) PutEngagement(e msg.Engagement) error {
	tx.note(failpoint.PutEngagement)
	_, err := tx.exec(`INSERT INTO chat_reply_state (jid, topic, engaged_folder, engaged_until, engaged_at, last_reply_id, ended_at)
		VALUES (?,?,?,?,?,?,?) ON CONFLICT (jid, topic) DO UPDATE SET engaged_folder = excluded.engaged_folder,
		engaged_until = excluded.engaged_until, engaged_at = excluded.engaged_at, last_reply_id = excluded.last_reply_id,
		ended_at = excluded.ended_at`,
		e.ChatJID, e.Place, null(e.Folder), null(e.Until), e.At, null(e.LastReply), null(e.EndedAt))
	return err
}

// Claim is a turn that claims its place for its folder, from the arrival of its
// trigger on.
type Claim struct {
	Folder string
	At     int64 // when the trigger arrived, unix ms
	OverAt int64 // when the turn and all deliveries of its replies had ended, 0 before that
}

// Claims returns the newest 32 claims on a place of a chat, newest first, ended
// or not. 32 is twice the number of a mention and all turns it may delegate.
func (r Reader) Claims(ctx context.Context, chatJID, place string) ([]Claim, error) {
	return collect(ctx, r.q, func(scan scanner) (c Claim, err error) {
		err = scan(&c.Folder, &c.At, &c.OverAt)
		return c, err
	}, queryClaims, chatJID, place)
}

// DeliveryChange is a change in the delivery of an outbound row, with the fields
// of its turn that engagement needs. For a delegated turn these are the root
// turn's. Without a turn, and in a broadcast, Folder is "".
type DeliveryChange struct {
	Seq       int64
	State     msg.OutState
	At        int64 // unix ms
	MessageID int64
	ChatJID   string
	Source    string
	Place     string
	Folder    string
	Claims    bool
	ClaimedAt int64 // when the turn's trigger arrived, unix ms
}

// DeliveryChanges returns the changes after seq, in order, at most limit.
func (r Reader) DeliveryChanges(ctx context.Context, seq int64, limit int) ([]DeliveryChange, error) {
	return collect(ctx, r.q, func(scan scanner) (d DeliveryChange, err error) {
		err = scan(&d.Seq, &d.State, &d.At, &d.MessageID, &d.ChatJID, &d.Source, &d.Place, &d.Folder, &d.Claims, &d.ClaimedAt)
		return d, err
	}, queryDeliveryChanges, seq, limit)
}
