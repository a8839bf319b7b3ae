// Package api is onbod's HTTP interface.
package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/onbod/internal/onboarding"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/store"
)

const (
	// timeout is below the 10 s of clients.
	timeout = 9 * time.Second
	// maxListed is how many requests one answer has.
	maxListed = 500
)

// API has the handlers. All fields must be set.
type API struct {
	Onboarding *onboarding.Onboarding
	Store      *store.Store
	TTL        time.Duration // until a request expires
}

// Mount adds the endpoints to r.
func (a *API) Mount(r chi.Router) {
	limit := httpx.NewLimit(timeout)
	for _, e := range []struct {
		method, path string
		answer       func(*http.Request) (any, error)
	}{
		{http.MethodPost, onboardapi.Path, with(a.Onboarding.Ask)},
		{http.MethodGet, onboardapi.Path, a.list},
		{http.MethodPost, "/approve", with(a.Onboarding.Approve)},
		{http.MethodPost, "/reject", with(a.Onboarding.Reject)},
		{http.MethodPost, "/reopen", with(a.Onboarding.Reopen)},
	} {
		r.Method(e.method, e.path, limit.Wrap(ok(e.answer)))
	}
}

// ok answers with a body.
func ok(answer func(*http.Request) (any, error)) httpx.Handler {
	return func(r *http.Request) (*httpx.Answer, error) {
		body, err := answer(r)
		if err != nil {
			return nil, wire(err)
		}
		return &httpx.Answer{Status: http.StatusOK, Body: body}, nil
	}
}

// wire gives a kind to errors of the database.
func wire(err error) error {
	if errors.Is(err, store.ErrStale) {
		return apierr.New(apierr.Conflict, "the request has changed in the meantime: look at it, and try again")
	}
	for _, temporary := range []error{store.ErrFull, store.ErrLocked, store.ErrClosed, context.DeadlineExceeded} {
		if errors.Is(err, temporary) {
			return apierr.New(apierr.Unavailable, "%w", err)
		}
	}
	return err
}

// with reads the body of a request and passes it to do.
func with[Body, Done any](do func(context.Context, Body) (Done, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		body, err := httpx.Decode[Body](r)
		if err != nil {
			return nil, err
		}
		return do(r.Context(), body)
	}
}

// request is a row on the wire. Times are unix ms. sender_name, title and sample are texts of
// strangers, each one line.
type request struct {
	Code       string                `json:"code"`
	ChatJID    string                `json:"chat_jid"`
	Kind       msg.ChatKind          `json:"kind"`
	Sender     string                `json:"sender"`
	SenderName string                `json:"sender_name"`
	Title      string                `json:"title"`
	Sample     string                `json:"sample"`
	ThreadID   string                `json:"thread_id"`
	State      factrows.RequestState `json:"state"`
	Folder     string                `json:"folder"`     // of a pending one: it is being approved into that
	DecidedBy  string                `json:"decided_by"` // "" for none
	DecidedAt  int64                 `json:"decided_at"` // 0 for none
	Reason     string                `json:"reason"`
	CreatedAt  int64                 `json:"created_at"`
	ExpiresAt  int64                 `json:"expires_at"` // 0 for a decided one
	// of a pending one: where an approval without a folder connects it
	Default string `json:"default_folder"`
}

func (a *API) list(r *http.Request) (any, error) {
	state := factrows.RequestState(r.URL.Query().Get("state"))
	switch state {
	case "", factrows.RequestPending, factrows.RequestApproved, factrows.RequestRejected, factrows.RequestExpired:
	default:
		return nil, apierr.New(apierr.BadRequest, "state %.80q is not pending, approved, rejected or expired", state)
	}
	stored, err := factrows.Requests(r.Context(), a.Store.Reader, state, maxListed)
	if err != nil {
		return nil, err
	}
	pending := slices.DeleteFunc(slices.Clone(stored),
		func(s *factrows.Request) bool { return s.State != factrows.RequestPending })
	folders, err := a.Onboarding.DefaultFolders(r.Context(), pending...)
	if err != nil {
		return nil, err
	}
	requests := make([]request, len(stored)) // [] rather than null
	for i, s := range stored {
		requests[i] = request{
			s.Code, s.ChatJID, s.Kind, s.Sender, s.SenderName, onboarding.Line(s.Title), s.Sample, s.ThreadID, s.State,
			s.Folder,
			s.DecidedBy, s.DecidedAt, s.Reason, s.CreatedAt, 0, folders[s.Code],
		}
		if s.State == factrows.RequestPending {
			requests[i].ExpiresAt = s.CreatedAt + a.TTL.Milliseconds()
		}
	}
	return map[string][]request{"requests": requests}, nil
}
