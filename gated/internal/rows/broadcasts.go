package rows

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Broadcast is a message to many chats. Its rows are stored in pages, in the order of Chats.
type Broadcast struct {
	ID         int64
	Key        string // of the request
	Text       string
	CreatedBy  string
	Chats      []string
	MessageIDs []int64 // of the rows that are stored
	CreatedAt  int64   // unix ms
	EndedAt    int64   // 0 while rows are missing
}

func scanBroadcast(scan store.Scan) (*Broadcast, error) {
	var b Broadcast
	var chats, ids string
	if err := scan(&b.ID, &b.Key, &b.Text, &b.CreatedBy, &chats, &ids, &b.CreatedAt, &b.EndedAt); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(chats), &b.Chats); err != nil {
		return nil, fmt.Errorf("broadcast %d: chats: %w", b.ID, err)
	}
	if err := json.Unmarshal([]byte(ids), &b.MessageIDs); err != nil {
		return nil, fmt.Errorf("broadcast %d: message_ids: %w", b.ID, err)
	}
	return &b, nil
}

// BroadcastByKey returns the broadcast of a request, nil if there is none.
func BroadcastByKey(ctx context.Context, r store.Reader, key string) (*Broadcast, error) {
	const query = `SELECT id, key, text, created_by, chats, message_ids, created_at, ifnull(ended_at, 0) FROM broadcasts WHERE key = ?`
	return store.First(store.All(ctx, r, scanBroadcast, query, key))
}

// OpenBroadcast returns the oldest broadcast with rows missing, nil if there is none.
func OpenBroadcast(ctx context.Context, r store.Reader) (*Broadcast, error) {
	const query = `SELECT id, key, text, created_by, chats, message_ids, created_at, 0 FROM broadcasts INDEXED BY broadcasts_open
		WHERE ended_at IS NULL ORDER BY id LIMIT 1`
	return store.First(store.All(ctx, r, scanBroadcast, query))
}

// PutBroadcast stores a broadcast without its rows. fresh is false if its key is stored already.
func PutBroadcast(tx *store.Tx, b *Broadcast) (fresh bool, err error) {
	const query = `INSERT INTO broadcasts (key, text, created_by, chats, created_at) VALUES (?,?,?,?,?) ON CONFLICT (key) DO NOTHING`
	chats, err := json.Marshal(b.Chats)
	if err != nil {
		return false, err
	}
	n, err := tx.Change(query, b.Key, store.Cut(store.CleanText(b.Text), store.MaxContent), b.CreatedBy,
		string(chats), b.CreatedAt)
	return n > 0, err
}

// PutBroadcastPage stores the rows for the next limit chats of a broadcast, and ends it with the last one. done
// is true if no row is missing any more.
func PutBroadcastPage(tx *store.Tx, key string, limit int, now int64) (done bool, err error) {
	const query = `UPDATE broadcasts SET message_ids = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL`
	tx.Note(failpoint.PutBroadcast)
	b, err := BroadcastByKey(store.Uncancelled(), tx.Reader, key)
	if err != nil || b == nil || b.EndedAt != 0 {
		return true, err
	}
	for range limit {
		at := len(b.MessageIDs)
		if at >= len(b.Chats) {
			break
		}
		id, err := PutBroadcastMessage(tx, &msg.Message{ChatJID: b.Chats[at], Content: b.Text}, now)
		if err != nil {
			return false, err
		}
		b.MessageIDs = append(b.MessageIDs, id)
	}
	ids, err := json.Marshal(b.MessageIDs)
	if err != nil {
		return false, err
	}
	var ended int64
	if len(b.MessageIDs) >= len(b.Chats) {
		ended = now
	}
	err = tx.Exec(query, string(ids), store.Null(ended), b.ID)
	return ended != 0, err
}

// PutBroadcastMessage stores a message at the top level of a chat that answers nothing. The caller sets the chat and
// the content, and for a group's agent also the sender and the one on whose behalf it writes.
func PutBroadcastMessage(tx *store.Tx, m *msg.Message, now int64) (id int64, err error) {
	m.Direction, m.IsBot, m.Source, m.OutState = msg.Out, true, msg.SourceBroadcast, msg.OutStateOf(m.ChatJID)
	m.Timestamp, m.ReceivedAt = now, now
	id, _, err = tx.PutMessage(m)
	return id, err
}
