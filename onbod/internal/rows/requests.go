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
	return store.First(factrows.ReadRequests(ctx, r, queryRequest, code))
}

// PendingRequests returns all pending requests, by chat.
func PendingRequests(ctx context.Context, r store.Reader) ([]*factrows.Request, error) {
	return factrows.ReadRequests(ctx, r, queryPendingRequests)
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
	_, err = r.Get(ctx, []any{&c.OfSender}, queryRequestsOfSender, sender, after, until)
	if err == nil {
		_, err = r.Get(ctx, []any{&c.Made}, queryRequestsSince, after, until)
	}
	if err == nil {
		_, err = r.Get(ctx, []any{&c.Pending}, queryRequestsPending)
	}
	return c, err
}

// WithdrawApproval undoes NoteApproval. It returns ErrStale if the request is decided.
func WithdrawApproval(tx *store.Tx, code string) error {
	return changeRequest(tx, code, updateWithdrawApproval, code)
}

// ReopenRequest makes a rejected or expired request pending again, as if it was made now. It returns ErrStale if
// the request is not one, and an ErrRefused if its chat has made another.
func ReopenRequest(tx *store.Tx, code string, now int64) error {
	tx.Note(failpoint.DecideRequest)
	return changeRequest(tx, code, updateReopenRequest, now, code)
}

// PurgeRequests deletes requests that were made and decided before a time, in unix ms, oldest first
// and at most limit, and returns how many.
func PurgeRequests(tx *store.Tx, before int64, limit int) (deleted int64, err error) {
	return tx.Change(deleteOldRequests, before, limit)
}

// NthRequestAt is when the request was made that has n newer ones, in unix ms; 0 if there are
// no more than n.
func NthRequestAt(ctx context.Context, r store.Reader, n int) (int64, error) {
	return store.Value[int64](ctx, r, queryNthRequest, n)
}

// PutRequest stores a pending request of a chat that has none. Its texts are cut to their limits, and
// a former address becomes the present one. State and the fields that a decision sets are ignored. If
// the code is taken, or the chat has a pending request, it returns an ErrRefused.
func PutRequest(tx *store.Tx, r *factrows.Request) (err error) {
	tx.Note(failpoint.PutRequest)
	if r.ChatJID, err = tx.Address(store.Uncancelled(), r.ChatJID); err != nil {
		return err
	}
	r.Sender, r.ThreadID = store.Truncate(store.CleanText(r.Sender), store.MaxReference),
		store.Truncate(store.CleanText(r.ThreadID), store.MaxReference)
	r.SenderName, r.Title, r.Sample = store.CleanName(r.SenderName), store.CleanName(r.Title), store.CleanName(r.Sample)
	return tx.Exec(insertRequest, r.Code, r.ChatJID, r.Kind, r.Sender, r.SenderName, r.Title, r.Sample, r.ThreadID,
		r.CreatedAt)
}

// NoteApproval notes that an operator approves a pending request into a folder. It returns ErrStale
// if the request is decided, or being approved already.
func NoteApproval(tx *store.Tx, code, folder, by string) error {
	tx.Note(failpoint.NoteApproval)
	return changeRequest(tx, code, updateNoteApproval, folder, by, code)
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
	tx.Note(failpoint.DecideRequest)
	tx.Poke("gated")
	return changeRequest(tx, code, updateDecideRequest, d.State, store.Null(d.Folder), d.By, store.CleanName(d.Reason),
		now, code)
}

// changeRequest runs an update of a request. It returns ErrStale if that is not in the state which the update asks for.
func changeRequest(tx *store.Tx, code, query string, args ...any) error {
	n, err := tx.Change(query, args...)
	if err == nil && n == 0 {
		err = fmt.Errorf("request %s: %w", code, store.ErrStale)
	}
	return err
}
