package rows

import (
	"context"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// A claim begins with the first row of its turn that claims, and is renewed by the last one: a turn
	// that waits takes in newer rows. The open claims come beside the newest ones: a turn may take longer
	// than many short ones after it.
	ClaimingRow = `r.direction = 'in' AND (r.verb IN ('mention', 'reply') OR r.reason = 'engaged')`
	// The work of another group, or of its own, that a turn began counts for that turn, as long as it answers in the
	// same place: an injected message may run anywhere, and a reminder that it made claims nothing. A message to a
	// fork's own thread from another place counts for that thread, and calls its group there: what users then write in
	// the thread is for the fork.
	RootHere = `p.id = t.root_turn_id AND p.chat_jid = t.chat_jid AND p.place = t.place AND t.kind ` +
		`<> 'broadcast'`
	queryDeliveryChanges = `SELECT d.seq, d.state, d.updated_at, m.id, m.chat_jid, m.source, ifnull(f.thread_id, ifnull(t.place,'')),
		ifnull(f.folder, ifnull(o.folder,'')),
		CASE WHEN f.topic IS NOT NULL THEN f.ended_at IS NULL
			ELSE ifnull(o.claims_engagement,0) = 1 AND (t.ended_at IS NULL OR m.received_at <= t.ended_at) END,
		ifnull(f.created_at, ifnull((SELECT max(r.received_at) FROM messages r WHERE r.turn_id = o.id AND ` + ClaimingRow + `), ifnull(q.received_at,0)))
		FROM deliveries d INDEXED BY deliveries_seq JOIN messages m ON m.id = d.message_id
		LEFT JOIN turns t ON t.id = m.turn_id LEFT JOIN turns p ON ` + RootHere + `
		LEFT JOIN turns o ON o.id = ifnull(p.id, t.id) AND o.kind <> 'broadcast'
		LEFT JOIN messages q ON q.id = o.trigger_message_id
		LEFT JOIN forks f ON f.chat_jid = m.chat_jid AND f.folder = t.folder AND t.place <> m.thread_id
			AND f.topic = (SELECT topic ` + store.ForkOfThread + `n.chat_jid = m.chat_jid AND n.thread_id = m.thread_id ` + store.NewestFork + `)
		WHERE d.seq > ? ORDER BY d.seq LIMIT ?+0`
	DeliveriesRead = `ifnull((SELECT CAST(value AS INTEGER) FROM cursors WHERE daemon = 'routd' AND key = 'deliveries'), 0)`
	LastDelivery   = `ifnull((SELECT max(seq) FROM deliveries), 0)`
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
func Engagement(ctx context.Context, r store.Reader, chatJID, place string) (e StoredEngagement, err error) {
	_, err = r.Get(ctx, []any{
		&e.ChatJID, &e.Place, &e.Folder, &e.Until, &e.At, &e.LastReply, &e.EndedAt, &e.PinnedAt, &e.Read, &e.Last,
	}, `SELECT `+engagementColumns+
		`, ifnull((SELECT sticky_at FROM chats WHERE jid = ?1), 0), `+DeliveriesRead+`, `+LastDelivery+`
			FROM (SELECT 1) one LEFT JOIN chat_reply_state ON jid = ?1 AND topic = ?2`,
		chatJID, place)
	e.ChatJID, e.Place = chatJID, place
	return e, err
}

// Engagements returns the places of a chat that have an engagement stored, those with the newest
// windows first, at most 1,000.
func Engagements(ctx context.Context, r store.Reader, chatJID string) ([]*msg.Engagement, error) {
	return store.All(ctx, r, func(scan store.Scan) (*msg.Engagement, error) {
		var e msg.Engagement
		err := scan(&e.ChatJID, &e.Place, &e.Folder, &e.Until, &e.At, &e.LastReply, &e.EndedAt)
		return &e, err
	}, `SELECT `+engagementColumns+` FROM chat_reply_state WHERE jid = ?
		ORDER BY engaged_until DESC NULLS LAST, topic LIMIT 1000`,
		chatJID)
}

// PutEngagement stores a place's window, or that none is open.
func PutEngagement(tx *store.Tx, e msg.Engagement) error {
	tx.Note(failpoint.PutEngagement)
	return tx.Exec(`INSERT INTO chat_reply_state (jid, topic, engaged_folder, engaged_until, engaged_at, last_reply_id, ended_at)
		VALUES (?,?,?,?,?,?,?) ON CONFLICT (jid, topic) DO UPDATE SET engaged_folder = excluded.engaged_folder,
		engaged_until = excluded.engaged_until, engaged_at = excluded.engaged_at, last_reply_id = excluded.last_reply_id,
		ended_at = excluded.ended_at`,
		e.ChatJID, e.Place, store.Null(e.Folder), store.Null(e.Until), e.At, store.Null(e.LastReply),
		store.Null(e.EndedAt))
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
func DeliveryChanges(ctx context.Context, r store.Reader, seq int64, limit int) ([]DeliveryChange, error) {
	return store.All(ctx, r, func(scan store.Scan) (d DeliveryChange, err error) {
		err = scan(&d.Seq, &d.State, &d.At, &d.MessageID, &d.ChatJID, &d.Source, &d.Place, &d.Folder, &d.Claims,
			&d.ClaimedAt)
		return d, err
	}, queryDeliveryChanges, seq, limit)
}
