package store

import (
	"context"

	"arizuko/pkg/msg"
)

// Waiting is the number of waiting rows and the oldest of them.
type Waiting struct {
	Rows    int
	Oldest  int64 // the oldest row's id, 0 if none waits
	ChatJID string
	Since   int64 // when the oldest was stored, unix ms
}

func (r Reader) waiting(ctx context.Context, query string, args ...any) (w Waiting, err error) {
	_, err = r.q.get(ctx, []any{&w.Rows, &w.Oldest, &w.ChatJID, &w.Since}, query, args...)
	return w, err
}

// WaitingInbound counts the undecided rows of all chats.
func (r Reader) WaitingInbound(ctx context.Context) (Waiting, error) {
	return r.waiting(ctx, queryWaitingIn)
}

// WaitingInboundBefore counts the undecided rows of a chat that arrived at the
// time before, in unix ms, or earlier.
func (r Reader) WaitingInboundBefore(ctx context.Context, chatJID string, before int64) (Waiting, error) {
	return r.waiting(ctx, queryWaitingBefore, chatJID, before)
}

// WaitingOutbound counts the undelivered rows of all chats.
func (r Reader) WaitingOutbound(ctx context.Context) (Waiting, error) {
	return r.waiting(ctx, queryWaitingOut)
}

// OpenTurnsOfChat returns the turns of a chat that have not ended, oldest first.
func (r Reader) OpenTurnsOfChat(ctx context.Context, chatJID string) ([]*msg.Turn, error) {
	return r.queryTurns(ctx, queryOpenOfChat, chatJID)
}

// QueuedBefore counts the queued turns that are older than a turn and not in
// backoff at the time now.
func (r Reader) QueuedBefore(ctx context.Context, turnID, now int64) (n int, err error) {
	_, err = r.q.get(ctx, []any{&n}, queryQueuedBefore, turnID, now)
	return n, err
}
