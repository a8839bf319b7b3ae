// Package api is routd's HTTP interface: it decides by the current table, and changes the rows that
// the table is compiled from.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/routd/internal/engagement"
	"arizuko/routd/internal/routing"
)

const (
	// questionTimeout leaves gated, which waits 2 s, time to receive the answer.
	questionTimeout = 1600 * time.Millisecond
	// changeTimeout is below the 10 s of clients, and of a wait for the write lock.
	changeTimeout = 8 * time.Second
)

// API has the handlers. All fields but Operators must be set.
type API struct {
	Store      *store.Store
	Loader     *routing.Loader
	Engagement *engagement.Tracker
	TTL        time.Duration   // of an engagement whose request has none
	Operators  map[string]bool // of OPERATORS
	Log        *slog.Logger
	Resolved   *prometheus.CounterVec // answers by reason
	Now        func() time.Time
	Data       string // the data folder, with the secrets of hooks
	Dashd      Dashd

	failing atomic.Bool // the database could not be read
}

// Dashd is where hooks are served.
type Dashd struct {
	Client *httpx.Client
	Public string // its URL for others, without a slash at its end
}

// Resolved registers the counter of answers.
func Resolved(metrics prometheus.Registerer) *prometheus.CounterVec {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_routd_resolved_total", Help: "Rows resolved, by the reason of the answer.",
	}, []string{"reason"})
	metrics.MustRegister(counter)
	return counter
}

// Mount adds the endpoints to r. Changes wait for the database's write lock, questions do not: each
// kind has its own limits, so that neither takes the other's place.
func (a *API) Mount(r chi.Router) {
	questions, changes := httpx.NewLimit(questionTimeout), httpx.NewLimit(changeTimeout)
	r.Get(routeapi.Path, httpx.ServeTalk(questionTimeout, a.answerAll)) // gated's, which asks about every message
	for _, e := range []struct {
		method, path string
		limit        *httpx.Limit
		answer       httpx.Handler
	}{
		{http.MethodPost, routeapi.Path, questions, a.resolve},
		{http.MethodGet, routeapi.RoutesPath, questions, a.listRoutes},
		{http.MethodPost, routeapi.RoutesPath, changes, a.addRoute},
		{http.MethodPut, routeapi.RoutesPath, changes, a.replaceRoutes},
		{http.MethodPost, routeapi.TestPath, questions, a.testRoutes},
		{http.MethodPut, "/v1/routes/{id}", changes, a.replaceRoute},
		{http.MethodDelete, "/v1/routes/{id}", changes, a.deleteRoute},
		{http.MethodGet, "/v1/groups", questions, a.listGroups},
		{http.MethodPost, "/v1/groups", changes, a.addGroup},
		{http.MethodGet, "/v1/groups/*", questions, a.getGroup},
		{http.MethodPut, "/v1/groups/*", changes, a.replaceGroup},
		{http.MethodPatch, "/v1/groups/*", changes, a.patchGroup},
		{http.MethodDelete, "/v1/groups/*", changes, a.deleteGroup},
		{http.MethodGet, "/v1/engagement", questions, a.getEngagement},
		{http.MethodGet, routeapi.AccessPath, questions, a.getAccess},
		{http.MethodPost, "/v1/engagement", changes, a.engage},
		{http.MethodPost, routeapi.ApprovalPath, changes, a.approve},
		{http.MethodPost, routeapi.HooksPath, changes, a.addHook},
		{http.MethodPost, routeapi.HookSecret, changes, a.replaceSecret},
		{http.MethodPost, routeapi.HookTest, changes, a.testHook},
		{http.MethodDelete, routeapi.HooksPath + "/*", changes, a.deleteHook},
	} {
		r.Method(e.method, e.path, e.limit.Wrap(e.answer))
	}
}

// answer is the answer of a handler, unless it has failed.
func answer(status int, body any, err error) (*httpx.Answer, error) {
	if err != nil {
		return nil, err
	}
	return &httpx.Answer{Status: status, Body: body}, nil
}

// write changes the tables and reloads them, so that the change counts once it is answered.
func (a *API) write(ctx context.Context, fn func(*store.Tx) error) error {
	if err := a.Store.Write(ctx, fn); err != nil {
		return retryable(err)
	}
	if err := a.Loader.Reload(context.WithoutCancel(ctx)); err != nil {
		// The change is stored: after an error the client would make it twice. Watch reloads again.
		a.Log.Error("reloading the table failed", "err", err)
	}
	return nil
}

// retryable marks temporary errors of a write as unavailable.
func retryable(err error) error {
	for _, temporary := range []error{store.ErrFull, store.ErrLocked, store.ErrClosed, context.DeadlineExceeded} {
		if errors.Is(err, temporary) {
			return apierr.New(apierr.Unavailable, "%w", err)
		}
	}
	return err
}

// unreadable marks an error of reading the database as unavailable: statements do not depend on a
// request, so it is the database or the deadline. It is logged once, until a resolve works again.
func (a *API) unreadable(err error) error {
	switch {
	case err == nil, apierr.KindOf(err) != apierr.Internal, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return apierr.New(apierr.Unavailable, "the database was not read in time")
	}
	if !a.failing.Swap(true) {
		a.Log.Error("reading the database failed", "err", err)
	}
	return apierr.New(apierr.Unavailable, "the database cannot be read: see the log of routd")
}

func badRequest(err error) error { return apierr.New(apierr.BadRequest, "%w", err) }
