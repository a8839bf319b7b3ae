package store

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const engagementColumns = `ifnull(jid,''), ifnull(topic,''), ifnull(engaged_folder,''), ifnull(engaged_until,0),
	ifnull(engaged_at,0), ifnull(last_reply_id,0), ifnull(ended_at,0)`

// StoredEngagement is the engagement of a place of a chat as routd has stored it.
type StoredEngagement struct {
	msg.Engagement
	PinnedAt int64 // when the chat was last pinned to a group, unix ms, 0 for never
	Read     int64 // seq of the last delivery that it includes
	Last     int64 // seq of the last delivery there is
}

// Engagement returns the engagement of a place of a chat, as of one moment; if none is stored, one
// with the address alone.
func (r Reader) Engagement(ctx context.Context, chatJID, place string) (e StoredEngagement, err error) {
	_, err = r.get(ctx, []any{
		&e.ChatJID, &e.Place, &e.Folder, &e.Until, &e.At, &e.LastReply, &e.EndedAt, &e.PinnedAt, &e.Read, &e.Last,
	}, queryEngagement, chatJID, place)
	e.ChatJID, e.Place = chatJID, place
	return e, err
}

// Engagements returns the places of a chat that have an engagement stored, those with the newest
// windows first, at most 1,000.
func (r Reader) Engagements(ctx context.Context, chatJID string) ([]*msg.Engagement, error) {
	return collect(ctx, r, func(scan scanner) (*msg.Engagement, error) {
		var e msg.Engagement
		err := scan(&e.ChatJID, &e.Place, &e.Folder, &e.Until, &e.At, &e.LastReply, &e.EndedAt)
		return &e, err
	}, queryEngagements, chatJID)
}

// PutEngagement stores a place's window, or that none is open.
func (tx *Tx) PutEngagement(e msg.Engagement) error {
	tx.note(failpoint.PutEngagement)
	return tx.exec(`INSERT INTO chat_reply_state (jid, topic, engaged_folder, engaged_until, engaged_at, last_reply_id, ended_at)
		VALUES (?,?,?,?,?,?,?) ON CONFLICT (jid, topic) DO UPDATE SET engaged_folder = excluded.engaged_folder,
		engaged_until = excluded.engaged_until, engaged_at = excluded.engaged_at, last_reply_id = excluded.last_reply_id,
		ended_at = excluded.ended_at`,
		e.ChatJID, e.Place, null(e.Folder), null(e.Until), e.At, null(e.LastReply), null(e.EndedAt))
}

// Claim is a turn that claims its place for its folder, from the arrival of the first row that
// claims on. Times are unix ms.
type Claim struct {
	Folder string
	At     int64 // when the turn's first row that claims arrived: a mention, a reply or a row of an engaged place
	LastAt int64 // when the last one did
	OverAt int64 // when the turn and all deliveries of its replies had ended, 0 before that
}

// ClaimCache keeps claims that are over: nothing changes them unless their turn is retried. It is safe
// for concurrent use.
type ClaimCache struct {
	mu     sync.Mutex
	claims map[int64]endedClaim // by turn
}

type endedClaim struct {
	Claim
	endedAt int64 // of the turn
}

// maxCachedClaims bounds a ClaimCache, to about 5 MiB.
const maxCachedClaims = 50_000

func (c *ClaimCache) get(turnID, endedAt int64) (claim Claim, found bool) {
	if c == nil || endedAt == 0 {
		return claim, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ended, found := c.claims[turnID]
	return ended.Claim, found && ended.endedAt == endedAt
}

func (c *ClaimCache) put(turnID int64, claim endedClaim) {
	if c == nil || claim.OverAt == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.claims == nil || len(c.claims) >= maxCachedClaims {
		c.claims = map[int64]endedClaim{}
	}
	c.claims[turnID] = claim
}

// Claims returns claims on a place of a chat: the newest 32, ended or not, newest first, and the newest
// 8 whose turn is open. 32 is twice the number of a mention and all turns it may delegate. cache may
// be nil.
func (r Reader) Claims(ctx context.Context, chatJID, place string, cache *ClaimCache) ([]Claim, error) {
	type turn struct{ id, endedAt int64 }
	turns, err := collect(ctx, r, func(scan scanner) (t turn, err error) {
		err = scan(&t.id, &t.endedAt)
		return t, err
	}, queryClaimTurns, chatJID, place)
	if err != nil {
		return nil, err
	}
	var claims []Claim
	for i, t := range turns {
		if slices.ContainsFunc(turns[:i], func(other turn) bool { return other.id == t.id }) {
			continue
		}
		claim, found := cache.get(t.id, t.endedAt)
		if !found {
			var read endedClaim
			if found, err = r.get(ctx, []any{&read.Folder, &read.At, &read.LastAt, &read.OverAt, &read.endedAt},
				queryClaim, t.id); err != nil {
				return nil, err
			}
			cache.put(t.id, read)
			claim = read.Claim
		}
		if found {
			claims = append(claims, claim)
		}
	}
	return claims, nil
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
	ClaimedAt int64 // when the turn's last row that claims arrived, else its trigger, unix ms
}

// DeliveryChanges returns the changes after seq, in order, at most limit.
func (r Reader) DeliveryChanges(ctx context.Context, seq int64, limit int) ([]DeliveryChange, error) {
	return collect(ctx, r, func(scan scanner) (d DeliveryChange, err error) {
		err = scan(&d.Seq, &d.State, &d.At, &d.MessageID, &d.ChatJID, &d.Source, &d.Place, &d.Folder, &d.Claims,
			&d.ClaimedAt)
		return d, err
	}, queryDeliveryChanges, seq, limit)
}

// DeliveriesRead returns the seq up to which routd has stored what deliveries change, and the last
// one there is.
func (r Reader) DeliveriesRead(ctx context.Context) (read, last int64, err error) {
	_, err = r.get(ctx, []any{&read, &last}, queryDeliveriesRead)
	return read, last, err
}

// PutDeliveriesRead stores the seq up to which routd has stored what deliveries change.
func (tx *Tx) PutDeliveriesRead(seq int64) error {
	return tx.PutCursor("routd", "deliveries", strconv.FormatInt(seq, 10))
}
