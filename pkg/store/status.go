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
	_, err = r.Get(ctx, []any{&w.Rows, &w.Oldest, &w.ChatJID, &w.Since}, query, args...)
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

// WaitingOutboundBefore counts the undelivered rows of a chat that were stored at the time before, in unix ms, or
// earlier.
func (r Reader) WaitingOutboundBefore(ctx context.Context, chatJID string, before int64) (Waiting, error) {
	platform, _ := msg.SplitJID(chatJID)
	return r.waiting(ctx, queryWaitingOutBefore, platform, chatJID, before)
}

// RunningTurns returns the oldest running turns of all chats, at most limit, and
// how many there are.
func (r Reader) RunningTurns(ctx context.Context, limit int) (oldest []*msg.Turn, count int, err error) {
	oldest, err = r.ReadTurns(ctx, queryRunningTurns, limit)
	if err != nil || len(oldest) < limit {
		return oldest, len(oldest), err
	}
	_, err = r.Get(ctx, []any{&count}, queryRunningCount)
	return oldest, max(count, len(oldest)), err // some may have ended in between
}

// QueuedTurns returns the oldest queued turns of all chats, at most limit, and
// how many there are.
func (r Reader) QueuedTurns(ctx context.Context, limit int) (oldest []*msg.Turn, count int, err error) {
	oldest, err = r.ReadTurns(ctx, queryQueuedTurns, limit)
	if err != nil || len(oldest) < limit {
		return oldest, len(oldest), err
	}
	count, err = r.CountQueued(ctx)
	return oldest, max(count, len(oldest)), err
}
