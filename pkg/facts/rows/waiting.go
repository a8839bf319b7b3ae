package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// PlatformWaiting is the undelivered rows of a platform.
type PlatformWaiting struct {
	Platform string
	Waiting
}

// WaitingByPlatform counts the undelivered rows of each platform.
func WaitingByPlatform(ctx context.Context, r store.Reader) ([]PlatformWaiting, error) {
	return store.All(ctx, r, func(scan store.Scan) (p PlatformWaiting, err error) {
		err = scan(&p.Platform, &p.Rows, &p.Oldest, &p.ChatJID, &p.Since)
		return p, err
	}, queryWaitingByPlatform)
}

// ParkedWithoutRequest counts the parked rows of chats without a pending request,
// those that arrived at the time before, in unix ms, or earlier.
func ParkedWithoutRequest(ctx context.Context, r store.Reader, before int64) (Waiting, error) {
	return waiting(ctx, r, queryParkedAlone, before)
}

// WantedWaiting counts the rows whose files are to be downloaded, those that arrived
// at the time before, in unix ms, or earlier.
func WantedWaiting(ctx context.Context, r store.Reader, before int64) (Waiting, error) {
	return waiting(ctx, r, queryWantedBefore, before)
}

// WaitingRequests counts the requests that wait for an operator. Oldest of the
// result is 0; code is that of the oldest.
func WaitingRequests(ctx context.Context, r store.Reader) (w Waiting, code string, err error) {
	_, err = r.Get(ctx, []any{&w.Rows, &code, &w.ChatJID, &w.Since}, queryWaitingRequests)
	return w, code, err
}

// CountQueued is the number of queued turns.
func CountQueued(ctx context.Context, r store.Reader) (int, error) {
	return store.Value[int](ctx, r, queryQueuedCount)
}

// Waiting is the number of waiting rows and the oldest of them.
type Waiting struct {
	Rows    int
	Oldest  int64 // the oldest row's id, 0 if none waits
	ChatJID string
	Since   int64 // when the oldest was stored, unix ms
}

func waiting(ctx context.Context, r store.Reader, query string, args ...any) (w Waiting, err error) {
	_, err = r.Get(ctx, []any{&w.Rows, &w.Oldest, &w.ChatJID, &w.Since}, query, args...)
	return w, err
}

// WaitingInbound counts the undecided rows of all chats.
func WaitingInbound(ctx context.Context, r store.Reader) (Waiting, error) {
	return waiting(ctx, r, queryWaitingIn)
}

// WaitingInboundBefore counts the undecided rows of a chat that arrived at the
// time before, in unix ms, or earlier.
func WaitingInboundBefore(ctx context.Context, r store.Reader, chatJID string, before int64) (Waiting, error) {
	return waiting(ctx, r, queryWaitingBefore, chatJID, before)
}

// WaitingOutbound counts the undelivered rows of all chats.
func WaitingOutbound(ctx context.Context, r store.Reader) (Waiting, error) {
	return waiting(ctx, r, queryWaitingOut)
}

// WaitingOutboundBefore counts the undelivered rows of a chat that were stored at the time before, in unix ms, or
// earlier.
func WaitingOutboundBefore(ctx context.Context, r store.Reader, chatJID string, before int64) (Waiting, error) {
	platform, _ := msg.SplitJID(chatJID)
	return waiting(ctx, r, queryWaitingOutBefore, platform, chatJID, before)
}

// RunningTurns returns the oldest running turns of all chats, at most limit, and
// how many there are.
func RunningTurns(ctx context.Context, r store.Reader, limit int) (oldest []*msg.Turn, count int, err error) {
	oldest, err = r.ReadTurns(ctx, queryRunningTurns, limit)
	if err != nil || len(oldest) < limit {
		return oldest, len(oldest), err
	}
	_, err = r.Get(ctx, []any{&count}, queryRunningCount)
	return oldest, max(count, len(oldest)), err // some may have ended in between
}

// QueuedTurns returns the oldest queued turns of all chats, at most limit, and
// how many there are.
func QueuedTurns(ctx context.Context, r store.Reader, limit int) (oldest []*msg.Turn, count int, err error) {
	oldest, err = r.ReadTurns(ctx, queryQueuedTurns, limit)
	if err != nil || len(oldest) < limit {
		return oldest, len(oldest), err
	}
	count, err = CountQueued(ctx, r)
	return oldest, max(count, len(oldest)), err
}
