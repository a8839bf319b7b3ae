package store

import (
	"arizuko/pkg/msg"
	"context"
)

// Waiting says what waits somewhere: how many rows, and the oldest of them.
type Waiting struct {
	Rows    int
	Oldest  int64 // its id, 0 if nothing waits
	ChatJID string
	Since   int64 // when it was stored, unix ms
}

func (r Reader) waiting(ctx context.Context, query string, args ...any) (w Waiting, err error) {
	_, err = r.q.get(ctx, []any{&w.Rows, &w.Oldest, &w.ChatJID, &w.Since}, query, args...)
	return w, err
}

// WaitingInbound is what has no disposition yet, in the whole instance.
func (r Reader) WaitingInbound(ctx context.Context) (Waiting, error) {
	return r.waiting(ctx, queryWaitingIn)
}

// WaitingInboundBefore is what came into a chat at the time before, in unix ms,
// or earlier, and has no disposition yet.
func (r Reader) WaitingInboundBefore(ctx context.Context, chatJID string, before int64) (Waiting, error) {
	return r.waiting(ctx, queryWaitingBefore, chatJID, before)
}

// WaitingOutbound is what is not delivered yet, in the whole instance.
func (r Reader) WaitingOutbound(ctx context.Context) (Waiting, error) {
	return r.waiting(ctx, queryWaitingOut)
}

// OpenTurnsOfChat returns the turns of a chat that have not ended, oldest first.
func (r Reader) OpenTurnsOfChat(ctx context.Context, chatJID string) ([]*msg.Turn, error) {
	return r.turns(ctx, queryOpenOfChat, chatJID)
}

// QueuedBefore counts the queued turns that stand before a turn: older ones
// that are not in a backoff at the time now.
func (r Reader) QueuedBefore(ctx context.Context, turnID, now int64) (n int, err error) {
	_, err = r.q.get(ctx, []any{&n}, queryQueuedBefore, turnID, now)
	return n, err
}
