// Package rows has the statements that routd alone needs: who answers in which place, and who has written there.
package rows

import (
	"context"
	"slices"
	"strconv"
	"sync"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/store"
)

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

// routd reads these for each question.
const (
	queryClaimTurns = `SELECT id, ended FROM (SELECT id, ifnull(ended_at, 0) AS ended FROM turns INDEXED BY turns_claims
		WHERE claims_engagement = 1 AND chat_jid = ?1 AND place = ?2 ORDER BY id DESC LIMIT 32) n
		UNION ALL SELECT * FROM (SELECT id, 0 FROM turns INDEXED BY turns_open_claims
		WHERE claims_engagement = 1 AND ended_at IS NULL AND chat_jid = ?1 AND place = ?2 ORDER BY id DESC LIMIT 8) o`
	queryClaim = `SELECT o.folder,
		ifnull((SELECT min(r.received_at) FROM messages r WHERE r.turn_id = o.id AND ` + factrows.ClaimingRow + `), q.received_at),
		ifnull((SELECT max(r.received_at) FROM messages r WHERE r.turn_id = o.id AND ` + factrows.ClaimingRow + `), q.received_at),
		CASE WHEN t.ended_at IS NULL OR EXISTS (SELECT 1 FROM messages m
		WHERE m.turn_id = t.id AND m.received_at <= t.ended_at AND m.out_state IN ('queued', 'sending')
		AND m.source IN ('agent', 'tool')) THEN 0
		ELSE max(t.ended_at, ifnull((SELECT max(d.updated_at) FROM messages m JOIN deliveries d ON d.message_id = m.id
		WHERE m.turn_id = t.id AND m.received_at <= t.ended_at AND m.source IN ('agent', 'tool')), 0)) END, ifnull(t.ended_at, 0)
		FROM turns t LEFT JOIN turns p ON ` + factrows.RootHere + ` JOIN turns o ON o.id = ifnull(p.id, t.id) JOIN messages q ON q.id = o.trigger_message_id
		WHERE t.id = ?`
)

// Claims returns claims on a place of a chat: the newest 32, ended or not, newest first, and the newest
// 8 whose turn is open. 32 is twice the number of a mention and all turns it may delegate. cache may
// be nil.
func Claims(ctx context.Context, r store.Reader, chatJID, place string, cache *ClaimCache) ([]Claim, error) {
	type turn struct{ id, endedAt int64 }
	turns, err := store.All(ctx, r, func(scan store.Scan) (t turn, err error) {
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
			if found, err = r.Get(ctx, []any{&read.Folder, &read.At, &read.LastAt, &read.OverAt, &read.endedAt},
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

// DeliveriesRead returns the seq up to which routd has stored the effects of deliveries, and the last
// one there is.
func DeliveriesRead(ctx context.Context, r store.Reader) (read, last int64, err error) {
	_, err = r.Get(ctx, []any{&read, &last}, `SELECT `+factrows.DeliveriesRead+`, `+factrows.LastDelivery)
	return read, last, err
}

// PutDeliveriesRead stores the seq up to which routd has stored the effects of deliveries.
func PutDeliveriesRead(tx *store.Tx, seq int64) error {
	return tx.PutCursor("routd", "deliveries", strconv.FormatInt(seq, 10))
}
