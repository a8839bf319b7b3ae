package rows

import (
	"context"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/store"
)

// Request returns a request by its code, which is in upper case; nil if there is none.
func Request(ctx context.Context, r store.Reader, code string) (*store.Request, error) {
	return store.First(r.ReadRequests(ctx, queryRequest, code))
}

// PendingRequests returns all pending requests, by chat.
func PendingRequests(ctx context.Context, r store.Reader) ([]*store.Request, error) {
	return r.ReadRequests(ctx, queryPendingRequests)
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
	return tx.ChangeRequest(code, updateWithdrawApproval, code)
}

// ReopenRequest makes a rejected or expired request pending again, as if it was made now. It returns ErrStale if
// the request is not one, and an ErrRefused if its chat has made another.
func ReopenRequest(tx *store.Tx, code string, now int64) error {
	tx.Note(failpoint.DecideRequest)
	return tx.ChangeRequest(code, updateReopenRequest, now, code)
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
