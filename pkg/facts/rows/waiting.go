// Package rows has the statements that read for several daemons and that pkg/store itself does not need: those of
// doctor, status, why and the dashboard among them.
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

// The number of rows of an index of those that wait, and the oldest of them.
const (
	countOf     = `SELECT w.n, ifnull(w.oldest,0), ifnull(f.chat_jid,''), ifnull(f.received_at,0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM messages m INDEXED BY `
	withOldest  = `) w LEFT JOIN messages f ON f.id = w.oldest`
	isUndecided = `messages_undecided WHERE direction = 'in' AND disposition IS NULL`
	isUnsent    = `messages_outbox WHERE out_state IN ('queued', 'sending')`
)

func waiting(ctx context.Context, r store.Reader, query string, args ...any) (w Waiting, err error) {
	_, err = r.Get(ctx, []any{&w.Rows, &w.Oldest, &w.ChatJID, &w.Since}, query, args...)
	return w, err
}

// Undecided counts the inbound rows without a decision: those of a chat that arrived at the time before, in unix ms, or
// earlier; with chatJID "", those of all chats.
func Undecided(ctx context.Context, r store.Reader, chatJID string, before int64) (Waiting, error) {
	if chatJID == "" {
		return waiting(ctx, r, countOf+isUndecided+withOldest)
	}
	return waiting(ctx, r, countOf+isUndecided+` AND chat_jid = ? AND received_at <= ?`+withOldest, chatJID, before)
}

// Unsent counts the outbound rows that are not delivered: those of a chat that were stored at the time before, in unix
// ms, or earlier; with chatJID "", those of all chats.
func Unsent(ctx context.Context, r store.Reader, chatJID string, before int64) (Waiting, error) {
	if chatJID == "" {
		return waiting(ctx, r, countOf+isUnsent+withOldest)
	}
	platform, _ := msg.SplitJID(chatJID)
	return waiting(ctx, r, countOf+isUnsent+` AND platform = ? AND chat_jid = ? AND received_at <= ?`+withOldest,
		platform, chatJID, before)
}

// ParkedWithoutRequest counts the parked rows of chats without a pending request,
// those that arrived at the time before, in unix ms, or earlier.
func ParkedWithoutRequest(ctx context.Context, r store.Reader, before int64) (Waiting, error) {
	return waiting(ctx, r, countOf+`messages_parked WHERE disposition = 'onboarding' AND received_at <= ?
		AND NOT EXISTS (SELECT 1 FROM onboarding_requests r INDEXED BY onboarding_pending WHERE r.state = 'pending' AND r.chat_jid = m.chat_jid)`+withOldest,
		before)
}

// WantedFiles counts the rows whose files are to be downloaded, those that arrived
// at the time before, in unix ms, or earlier.
func WantedFiles(ctx context.Context, r store.Reader, before int64) (Waiting, error) {
	return waiting(ctx, r, countOf+`messages_wanted WHERE pending_files > 0 AND files_wanted = 1 AND `+
		`received_at <= ?`+withOldest,
		before)
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
	}, `SELECT w.platform, w.n, w.oldest, m.chat_jid, m.received_at FROM
		(SELECT platform, count(*) n, min(id) oldest FROM messages INDEXED BY messages_outbox
			WHERE out_state IN ('queued', 'sending') GROUP BY platform) w
		JOIN messages m ON m.id = w.oldest`)
}

const countRequests = `SELECT count(*) AS n FROM onboarding_requests INDEXED BY onboarding_pending WHERE state = 'pending'`

// CountRequests counts the requests that wait for an operator, which is cheaper than to find the oldest.
func CountRequests(ctx context.Context, r store.Reader) (int, error) {
	return store.Value[int](ctx, r, countRequests)
}

// WaitingRequests counts the requests that wait for an operator. Oldest of the
// result is 0; code is that of the oldest.
func WaitingRequests(ctx context.Context, r store.Reader) (w Waiting, code string, err error) {
	_, err = r.Get(ctx, []any{&w.Rows, &code, &w.ChatJID, &w.Since},
		`SELECT w.n, ifnull(r.code,''), ifnull(r.chat_jid,''), ifnull(r.created_at,0)
		FROM (`+countRequests+`) w
		LEFT JOIN onboarding_requests r ON r.code = (SELECT code FROM onboarding_requests INDEXED BY onboarding_pending WHERE state = 'pending'
			ORDER BY created_at LIMIT 1)`)
	return w, code, err
}

// OldestTurns returns the oldest turns of all chats that are queued or running, at most limit, and how many there are.
func OldestTurns(ctx context.Context, r store.Reader, state msg.TurnState, limit int) (oldest []*msg.Turn, count int,
	err error) {
	turns, total := `SELECT `+store.TurnColumns+
		` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' ORDER BY t.id LIMIT ?+0`,
		`SELECT count(*) FROM turns INDEXED BY turns_run WHERE state = 'running'`
	if state == msg.TurnQueued {
		turns, total = `SELECT `+store.TurnColumns+` FROM turns t WHERE t.id IN
		(SELECT id FROM turns INDEXED BY turns_queued WHERE state = 'queued' ORDER BY id LIMIT ?+0) ORDER BY t.id`,
			`SELECT count(*) FROM turns INDEXED BY turns_queued WHERE state = 'queued'`
	}
	oldest, err = r.ReadTurns(ctx, turns, limit)
	if err != nil || len(oldest) < limit {
		return oldest, len(oldest), err
	}
	count, err = store.Value[int](ctx, r, total)
	return oldest, max(count, len(oldest)), err // some may have ended in between
}
