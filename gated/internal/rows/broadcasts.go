package rows

import (
	"encoding/json"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// PutBroadcast stores a broadcast without its rows. fresh is false if its key is stored already.
func PutBroadcast(tx *store.Tx, b *store.Broadcast) (fresh bool, err error) {
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
	b, err := tx.BroadcastByKey(store.Uncancelled(), key)
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

// PutBroadcastMessage stores a message at the top level of a chat that answers nothing. The caller sets the chat and the
// content, and of one that a group's agent sends on behalf of a sender both of these.
func PutBroadcastMessage(tx *store.Tx, m *msg.Message, now int64) (id int64, err error) {
	m.Direction, m.IsBot, m.Source, m.OutState = msg.Out, true, msg.SourceBroadcast, store.OutStateOf(m.ChatJID)
	m.Timestamp, m.ReceivedAt = now, now
	id, _, err = tx.PutMessage(m)
	return id, err
}
