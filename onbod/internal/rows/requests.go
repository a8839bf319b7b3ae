// Package rows has the statements that onbod alone needs, about requests.
package rows

import (
	"context"
	"fmt"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/store"
)

// Request returns a request by its code, which is in upper case; nil if there is none.
func Request(ctx context.Context, r store.Reader, code string) (*factrows.Request, error) {
	const query = factrows.RequestColumns + factrows.RequestChat + ` WHERE r.code = ?`
	return store.First(factrows.ReadRequests(ctx, r, query, code))
}

// PendingRequests returns all pending requests, by chat.
func PendingRequests(ctx context.Context, r store.Reader) ([]*factrows.Request, error) {
	const query = factrows.RequestColumns + ` INDEXED BY onboarding_pending` + factrows.RequestChat +
		` WHERE r.state = 'pending'`
	return factrows.ReadRequests(ctx, r, query)
}

// RequestCounts are numbers of requests.
type RequestCounts struct {
	OfSender int // made by one sender within the time
	Made     int // made by all within the time
	Pending  int
}

// CountRequests counts the requests made after a time and not after another, in unix ms, and those
// pending.
func CountRequests(ctx context.Context, r store.Reader, sender string, after, until int64) (c RequestCounts,
	err error) {
	const query = `SELECT
		(SELECT count(*) FROM onboarding_requests INDEXED BY onboarding_sender WHERE sender = ?1 AND created_at > ?2 AND created_at <= ?3),
		(SELECT count(*) FROM onboarding_requests INDEXED BY onboarding_created WHERE created_at > ?2 AND created_at <= ?3),
		(SELECT count(*) FROM onboarding_requests INDEXED BY onboarding_pending WHERE state = 'pending')`
	_, err = r.Get(ctx, []any{&c.OfSender, &c.Made, &c.Pending}, query, sender, after, until)
	return c, err
}

// WithdrawApproval undoes NoteApproval. It returns ErrStale if the request is decided.
func WithdrawApproval(tx *store.Tx, code string) error {
	const query = `UPDATE onboarding_requests SET folder = NULL, decided_by = NULL WHERE code = ? AND state = 'pending'`
	return changeRequest(tx, code, query, code)
}

// ReopenRequest makes a rejected or expired request pending again, as if it was made now. It returns ErrStale if
// the request is not one, and an ErrRefused if its chat has made another.
func ReopenRequest(tx *store.Tx, code string, now int64) error {
	const query = `UPDATE onboarding_requests SET state = 'pending', folder = NULL, decided_by = NULL, reason = '', decided_at = NULL, created_at = ?
		WHERE code = ? AND state IN ('rejected', 'expired')`
	tx.Note(failpoint.DecideRequest)
	return changeRequest(tx, code, query, now, code)
}

// PurgeRequests deletes requests that were made and decided before a time, in unix ms, oldest first
// and at most limit, and returns how many.
func PurgeRequests(tx *store.Tx, before int64, limit int) (deleted int64, err error) {
	const query = `DELETE FROM onboarding_requests WHERE code IN (SELECT code FROM onboarding_requests INDEXED BY onboarding_created
		WHERE created_at < ?1 AND decided_at < ?1 ORDER BY created_at LIMIT ?2+0)`
	return tx.Change(query, before, limit)
}

// NthRequestAt is when the request was made that has n newer ones, in unix ms; 0 if there are
// no more than n.
func NthRequestAt(ctx context.Context, r store.Reader, n int) (int64, error) {
	const query = `SELECT created_at FROM onboarding_requests ORDER BY created_at DESC LIMIT 1 OFFSET ?+0`
	return store.Value[int64](ctx, r, query, n)
}

// PutRequest stores a pending request of a chat that has none. Its texts are cut to their limits, and
// a former address becomes the present one. State and the fields that a decision sets are ignored. If
// the code is taken, or the chat has a pending request, it returns an ErrRefused.
func PutRequest(tx *store.Tx, r *factrows.Request) (err error) {
	const query = `INSERT INTO onboarding_requests (code, chat_jid, kind, sender, sender_name, title, sample, thread_id, state, created_at)
		VALUES (?,?,?,?,?,?,?,?,'pending',?)`
	tx.Note(failpoint.PutRequest)
	if r.ChatJID, err = tx.Address(store.Uncancelled(), r.ChatJID); err != nil {
		return err
	}
	r.Sender, r.ThreadID = store.Truncate(store.CleanText(r.Sender), store.MaxReference),
		store.Truncate(store.CleanText(r.ThreadID), store.MaxReference)
	r.SenderName, r.Title, r.Sample = store.CleanName(r.SenderName), store.CleanName(r.Title), store.CleanName(r.Sample)
	return tx.Exec(query, r.Code, r.ChatJID, r.Kind, r.Sender, r.SenderName, r.Title, r.Sample, r.ThreadID,
		r.CreatedAt)
}

// NoteApproval notes that an operator approves a pending request into a folder. It returns ErrStale
// if the request is decided, or being approved already.
func NoteApproval(tx *store.Tx, code, folder, by string) error {
	const query = `UPDATE onboarding_requests SET folder = ?, decided_by = ? WHERE code = ? AND state = 'pending' AND folder IS NULL`
	tx.Note(failpoint.NoteApproval)
	return changeRequest(tx, code, query, folder, by, code)
}

// RequestDecision is how a request ends.
type RequestDecision struct {
	State  factrows.RequestState
	Folder string // of an approved one, else ""
	By     string
	Reason string // of a rejected one, may be ""
}

// DecideRequest ends a pending request and pokes gated. It returns ErrStale if the request is decided.
func DecideRequest(tx *store.Tx, code string, d RequestDecision, now int64) error {
	const query = `UPDATE onboarding_requests SET state = ?, folder = ?, decided_by = ?, reason = ?, decided_at = ?
		WHERE code = ? AND state = 'pending'`
	tx.Note(failpoint.DecideRequest)
	tx.Poke("gated")
	return changeRequest(tx, code, query, d.State, store.Null(d.Folder), d.By, store.CleanName(d.Reason), now, code)
}

// changeRequest runs an update of a request. It returns ErrStale if that is not in the state which the update asks for.
func changeRequest(tx *store.Tx, code, query string, args ...any) error {
	n, err := tx.Change(query, args...)
	if err == nil && n == 0 {
		err = fmt.Errorf("request %s: %w", code, store.ErrStale)
	}
	return err
}

// FolderUsed reports whether a group has the folder, or had it and may have left files there.
func FolderUsed(ctx context.Context, r store.Reader, folder string) (bool, error) {
	// A turn that never started has made no files.
	const query = `SELECT EXISTS (SELECT 1 FROM registered_groups WHERE folder = ?1) OR EXISTS (SELECT 1 FROM sessions WHERE group_folder = ?1)
		OR EXISTS (SELECT 1 FROM turns INDEXED BY turns_folder WHERE folder = ?1 AND started_at IS NOT NULL)`
	return store.Value[bool](ctx, r, query, folder)
}
