package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

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

// Undecided counts the inbound rows without a decision: those of a chat that arrived at the time before, in unix ms, or
// earlier; with chatJID "", those of all chats.
func Undecided(ctx context.Context, r store.Reader, chatJID string, before int64) (Waiting, error) {
	if chatJID == "" {
		return waiting(ctx, r, queryUndecided)
	}
	return waiting(ctx, r, queryUndecidedInChat, chatJID, before)
}

// Unsent counts the outbound rows that are not delivered: those of a chat that were stored at the time before, in unix
// ms, or earlier; with chatJID "", those of all chats.
func Unsent(ctx context.Context, r store.Reader, chatJID string, before int64) (Waiting, error) {
	if chatJID == "" {
		return waiting(ctx, r, queryUnsent)
	}
	platform, _ := msg.SplitJID(chatJID)
	return waiting(ctx, r, queryUnsentInChat, platform, chatJID, before)
}

// ParkedWithoutRequest counts the parked rows of chats without a pending request,
// those that arrived at the time before, in unix ms, or earlier.
func ParkedWithoutRequest(ctx context.Context, r store.Reader, before int64) (Waiting, error) {
	return waiting(ctx, r, queryParkedAlone, before)
}

// WantedFiles counts the rows whose files are to be downloaded, those that arrived
// at the time before, in unix ms, or earlier.
func WantedFiles(ctx context.Context, r store.Reader, before int64) (Waiting, error) {
	return waiting(ctx, r, queryWantedBefore, before)
}

// PlatformWaiting is the undelivered rows of a platform.
type PlatformWaiting struct {
	Platform string
	Waiting
}

// UnsentByPlatform counts the undelivered rows of each platform.
func UnsentByPlatform(ctx context.Context, r store.Reader) ([]PlatformWaiting, error) {
	return store.All(ctx, r, func(scan store.Scan) (p PlatformWaiting, err error) {
		err = scan(&p.Platform, &p.Rows, &p.Oldest, &p.ChatJID, &p.Since)
		return p, err
	}, queryUnsentByPlatform)
}

// WaitingRequests counts the requests that wait for an operator. Oldest of the
// result is 0; code is that of the oldest.
func WaitingRequests(ctx context.Context, r store.Reader) (w Waiting, code string, err error) {
	_, err = r.Get(ctx, []any{&w.Rows, &code, &w.ChatJID, &w.Since}, queryWaitingRequests)
	return w, code, err
}

// OldestTurns returns the oldest turns of all chats that are queued or running, at most limit, and how many there are.
func OldestTurns(ctx context.Context, r store.Reader, state msg.TurnState, limit int) (oldest []*msg.Turn, count int,
	err error) {
	turns, total := queryRunningTurns, queryRunningCount
	if state == msg.TurnQueued {
		turns, total = queryQueuedTurns, queryQueuedCount
	}
	oldest, err = r.ReadTurns(ctx, turns, limit)
	if err != nil || len(oldest) < limit {
		return oldest, len(oldest), err
	}
	count, err = store.Value[int](ctx, r, total)
	return oldest, max(count, len(oldest)), err // some may have ended in between
}
