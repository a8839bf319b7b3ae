package store

import (
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"context"
)

const engagementColumns = `jid, topic, ifnull(engaged_folder,''), ifnull(engaged_until,0), engaged_at,
	ifnull(last_reply_id,0), ifnull(ended_at,0)`

func scanEngagement(scan scanner) (*msg.Engagement, error) {
	var e msg.Engagement
	err := scan(&e.ChatJID, &e.Place, &e.Folder, &e.Until, &e.At, &e.LastReply, &e.EndedAt)
	return &e, err
}

// Engagement returns what is stored of a place of a chat; with the address
// alone if that is nothing.
func (r Reader) Engagement(ctx context.Context, chatJID, place string) (msg.Engagement, error) {
	e, err := first(collect(ctx, r.q, scanEngagement,
		`SELECT `+engagementColumns+` FROM chat_reply_state WHERE jid = ? AND topic = ?`, chatJID, place))
	if e == nil {
		e = &msg.Engagement{ChatJID: chatJID, Place: place}
	}
	return *e, err
}

// Engagements lists what is stored of all places of a chat.
func (r Reader) Engagements(ctx context.Context, chatJID string) ([]*msg.Engagement, error) {
	return collect(ctx, r.q, scanEngagement,
		`SELECT `+engagementColumns+` FROM chat_reply_state WHERE jid = ? ORDER BY topic`, chatJID)
}

// PutEngagement stores a place's window, or that it has none.
func (tx *Tx) PutEngagement(e msg.Engagement) error {
	tx.note(failpoint.PutEngagement)
	_, err := tx.exec(`INSERT INTO chat_reply_state (jid, topic, engaged_folder, engaged_until, engaged_at, last_reply_id, ended_at)
		VALUES (?,?,?,?,?,?,?) ON CONFLICT (jid, topic) DO UPDATE SET engaged_folder = excluded.engaged_folder,
		engaged_until = excluded.engaged_until, engaged_at = excluded.engaged_at, last_reply_id = excluded.last_reply_id,
		ended_at = excluded.ended_at`,
		e.ChatJID, e.Place, null(e.Folder), null(e.Until), e.At, null(e.LastReply), null(e.EndedAt))
	return err
}

// Claim is a turn that holds its place for the folder it was given to, from the
// moment its trigger came.
type Claim struct {
	Folder string
	At     int64 // when the trigger came, unix ms
	OverAt int64 // when the turn and the deliveries of what it said had all ended, 0 while one has not
}

// Claims returns the newest 32 claims on a place of a chat, the newest first,
// whether they are over or not: those of a mention and all that one turn may
// delegate, twice.
func (r Reader) Claims(ctx context.Context, chatJID, place string) ([]Claim, error) {
	return collect(ctx, r.q, func(scan scanner) (c Claim, err error) {
		err = scan(&c.Folder, &c.At, &c.OverAt)
		return c, err
	}, queryClaims, chatJID, place)
}

// DeliveryChange is a change in the delivery of an outbound row, with what
// engagement wants to know of its turn. A delegated turn stands for the one it
// was delegated by. Without a turn, and in a broadcast, Folder is "".
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
	ClaimedAt int64 // when the turn's trigger came, unix ms
}

// DeliveryChanges returns the parts changed behind seq, in the order in which
// they were, at most limit.
func (r Reader) DeliveryChanges(ctx context.Context, seq int64, limit int) ([]DeliveryChange, error) {
	return collect(ctx, r.q, func(scan scanner) (d DeliveryChange, err error) {
		err = scan(&d.Seq, &d.State, &d.At, &d.MessageID, &d.ChatJID, &d.Source, &d.Place, &d.Folder, &d.Claims, &d.ClaimedAt)
		return d, err
	}, queryDeliveryChanges, seq, limit)
}
