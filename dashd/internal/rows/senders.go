package rows

import (
	"context"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// SenderChat is a chat that a sender has written in under a name.
type SenderChat struct {
	JID, Name string
	Count     int
	At        int64 // of the last message, unix ms
}

// SenderChats returns where, and under which names, a sender wrote the newest messages; the place of the newest first.
func SenderChats(ctx context.Context, r store.Reader, sender string, limit int) ([]SenderChat, error) {
	return store.All(ctx, r, func(scan store.Scan) (c SenderChat, err error) {
		err = scan(&c.JID, &c.Name, &c.Count, &c.At)
		return c, err
	}, querySenderChats, sender, limit)
}

// SenderTurns returns the newest turns that messages of a sender began.
func SenderTurns(ctx context.Context, r store.Reader, sender string, limit int) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, querySenderTurns, sender, limit)
}

// Asked is the usage of the turns that the newest messages of a sender began.
type Asked struct {
	factrows.Spend
	Hour int // turns since the time in question
}

// SenderAsked sums the usage of a sender, and counts the turns since a time, in unix ms.
func SenderAsked(ctx context.Context, r store.Reader, sender string, since int64) (a Asked, err error) {
	_, err = r.Get(ctx, []any{&a.Turns, &a.Input, &a.Output, &a.CostUSD, &a.Hour}, querySenderSpend, sender, since)
	return a, err
}

// ChatPolls returns the newest polls of a chat.
func ChatPolls(ctx context.Context, r store.Reader, chatJID string, limit int) ([]*msg.StoredPoll, error) {
	return factrows.ReadPolls(ctx, r, queryChatPolls, chatJID, limit)
}
