// Package api is routd's HTTP interface: it decides by the current table, and changes the rows that
// the table is compiled from.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
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

// API has the handlers. All fields must be set.
type API struct {
	Store      *store.Store
	Loader     *routing.Loader
	Engagement *engagement.Tracker
	TTL        time.Duration // of an engagement whose request has none
	Log        *slog.Logger
	Resolved   *prometheus.CounterVec // answers by reason
	Now        func() time.Time
}

// Resolved registers the counter of answers.
func Resolved(metrics prometheus.Registerer) *prometheus.CounterVec {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_routd_resolved_total", Help: "Rows resolved, by the reason of the answer.",
	}, []string{"reason"})
	metrics.MustRegister(counter)
	return counter
}

// Mount adds the endpoints to r.
func (a *API) Mount(r chi.Router) {
	r.Method(http.MethodPost, routeapi.Path, handler(a.resolve))
	r.Method(http.MethodGet, "/v1/routes", handler(a.listRoutes))
	r.Method(http.MethodPost, "/v1/routes", handler(a.addRoute))
	r.Method(http.MethodPost, "/v1/routes/test", handler(a.testRoutes))
	r.Method(http.MethodPut, "/v1/routes/{id}", handler(a.replaceRoute))
	r.Method(http.MethodDelete, "/v1/routes/{id}", handler(a.deleteRoute))
	r.Method(http.MethodGet, "/v1/groups", handler(a.listGroups))
	r.Method(http.MethodPost, "/v1/groups", handler(a.addGroup))
	r.Method(http.MethodGet, "/v1/groups/*", handler(a.getGroup))
	r.Method(http.MethodPut, "/v1/groups/*", handler(a.replaceGroup))
	r.Method(http.MethodDelete, "/v1/groups/*", handler(a.deleteGroup))
	r.Method(http.MethodGet, "/v1/engagement", handler(a.getEngagement))
	r.Method(http.MethodPost, "/v1/engagement", handler(a.engage))
}

// handler answers a request or returns an error, which is answered with its status.
type handler func(w http.ResponseWriter, r *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		httpx.Error(w, err)
	}
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

// retryable marks temporary errors as unavailable.
func retryable(err error) error {
	for _, temporary := range []error{store.ErrFull, store.ErrLocked, store.ErrClosed} {
		if errors.Is(err, temporary) {
			return apierr.New(apierr.Unavailable, "%w", err)
		}
	}
	return err
}

func badRequest(err error) error { return apierr.New(apierr.BadRequest, "%w", err) }
