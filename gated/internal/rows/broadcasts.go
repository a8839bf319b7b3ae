package rows

import (
	"context"
	"encoding/json"
	"fmt"

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
	return store.First(store.All(ctx, r, scanBroadcast, queryBroadcastByKey, key))
}

// OpenBroadcast returns the oldest broadcast with rows missing, nil if there is none.
func OpenBroadcast(ctx context.Context, r store.Reader) (*Broadcast, error) {
	return store.First(store.All(ctx, r, scanBroadcast, queryOpenBroadcast))
}
