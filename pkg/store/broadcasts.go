package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
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

func scanBroadcast(scan scanner) (*Broadcast, error) {
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
func (r Reader) BroadcastByKey(ctx context.Context, key string) (*Broadcast, error) {
	return first(collect(ctx, r, scanBroadcast, queryBroadcastByKey, key))
}

// BroadcastOf returns the broadcast that made a row, nil if none did. It reads all broadcasts.
func (r Reader) BroadcastOf(ctx context.Context, message int64) (*Broadcast, error) {
	return first(collect(ctx, r, scanBroadcast, queryBroadcastOf, message))
}

// OpenBroadcast returns the oldest broadcast of which rows are missing, nil if there is none.
func (r Reader) OpenBroadcast(ctx context.Context) (*Broadcast, error) {
	return first(collect(ctx, r, scanBroadcast, queryOpenBroadcast))
}

// PutBroadcast stores a broadcast without its rows. fresh is false if its key is stored already.
func (tx *Tx) PutBroadcast(b *Broadcast) (fresh bool, err error) {
	chats, err := json.Marshal(b.Chats)
	if err != nil {
		return false, err
	}
	n, err := tx.change(insertBroadcast, b.Key, cut(cleanText(b.Text), maxContent), b.CreatedBy, string(chats),
		b.CreatedAt)
	return n > 0, err
}

// PutBroadcastPage stores the rows for the next limit chats of a broadcast, and ends it with the last one. done
// is true if no row is missing any more.
func (tx *Tx) PutBroadcastPage(key string, limit int, now int64) (done bool, err error) {
	tx.note(failpoint.PutBroadcast)
	b, err := tx.BroadcastByKey(uncancelled(), key)
	if err != nil || b == nil || b.EndedAt != 0 {
		return true, err
	}
	for range limit {
		at := len(b.MessageIDs)
		if at >= len(b.Chats) {
			break
		}
		id, err := tx.PutBroadcastMessage(b.Chats[at], b.Text, now)
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
	err = tx.exec(updateBroadcast, string(ids), null(ended), b.ID)
	return ended != 0, err
}

// PutBroadcastMessage stores a message at the top level of a chat that answers nothing.
func (tx *Tx) PutBroadcastMessage(chatJID, text string, now int64) (id int64, err error) {
	return tx.putBroadcastMessage(&msg.Message{ChatJID: chatJID, Content: text}, now)
}

// PutBroadcastMessageFor stores one that a group's agent sends on behalf of a sender.
func (tx *Tx) PutBroadcastMessageFor(folder, payer, chatJID, text string, now int64) (id int64, err error) {
	return tx.putBroadcastMessage(&msg.Message{ChatJID: chatJID, Content: text, Sender: msg.AgentSender(folder),
		OnBehalfOf: payer}, now)
}

func (tx *Tx) putBroadcastMessage(m *msg.Message, now int64) (id int64, err error) {
	m.Direction, m.IsBot, m.Source, m.OutState = msg.Out, true, msg.SourceBroadcast, OutStateOf(m.ChatJID)
	m.Timestamp, m.ReceivedAt = now, now
	id, _, err = tx.PutMessage(m)
	return id, err
}

// TopLevels returns those of some chats that take messages outside of threads, and the others.
func (r Reader) TopLevels(ctx context.Context, jids []string) (with, without []string, err error) {
	for _, jid := range jids {
		has, err := r.HasTopLevel(ctx, jid)
		switch {
		case err != nil:
			return nil, nil, err
		case has:
			with = append(with, jid)
		default:
			without = append(without, jid)
		}
	}
	return with, without, nil
}

// ChatsPage returns the chats whose addresses come after one, at most limit, by address.
func (r Reader) ChatsPage(ctx context.Context, after string, limit int) ([]*msg.Chat, error) {
	return collect(ctx, r, func(scan scanner) (*msg.Chat, error) {
		var c msg.Chat
		err := scan(&c.JID, &c.Kind, &c.Title, &c.StickyTopic, &c.StickyGroup, &c.StickyAt)
		return &c, err
	}, queryChatsPage, after, limit)
}

// AnnouncedSchema is the schema version that gated has announced last, 0 for none.
func (r Reader) AnnouncedSchema(ctx context.Context) (version int64, err error) {
	return r.state(ctx, stateAnnounced)
}

// SetAnnouncedSchema stores that version.
func (tx *Tx) SetAnnouncedSchema(version int64) error {
	return tx.exec(putState, stateAnnounced, version)
}

// SchemaVersion is the number of the last migration.
func (r Reader) SchemaVersion(ctx context.Context) (int64, error) {
	return value[int64](ctx, r, `SELECT version FROM schema_migrations`)
}
