package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"arizuko/pkg/apierr"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/routecheck"
	"arizuko/routd/internal/engagement"
	"arizuko/routd/internal/routing"
)

// maxExplained bounds how many rows a test explains that do not match.
const maxExplained = 20

func (a *API) resolve(r *http.Request) (*httpx.Answer, error) {
	request, err := httpx.Decode[routeapi.Request](r)
	if err != nil {
		return nil, err
	}
	if n := len(request.Items); n > routeapi.MaxItems {
		return nil, apierr.New(apierr.BadRequest, "%d items, at most %d are taken at once", n, routeapi.MaxItems)
	}
	response, err := a.decide(r.Context(), request.Items)
	if err != nil {
		return nil, err
	}
	for i := range response.Items {
		a.count(r.Context(), &request.Items[i], &response.Items[i])
	}
	failpoint.At(failpoint.Answering)
	return &httpx.Answer{Status: http.StatusOK, Body: response}, nil
}

// decide answers all items or none: they are decided in order, since one may claim for the next.
func (a *API) decide(ctx context.Context, items []routeapi.Item) (*routeapi.Response, error) {
	if len(items) == 0 { // gated asks whether it can ask
		if err := a.Engagement.CatchUp(ctx); err != nil {
			return nil, a.unreadable(err)
		}
	}
	engaged := a.Engagement.Snapshot()
	table := a.Loader.Table()
	response := &routeapi.Response{Version: table.Version, Items: make([]routeapi.Answer, len(items))}
	for i := range items {
		response.Items[i] = decideOne(ctx, table, &items[i], engaged)
		if ctx.Err() != nil {
			return nil, apierr.New(apierr.Unavailable, "%d of %d items decided within %s: ask about fewer at once",
				i, len(items), questionTimeout)
		}
	}
	if err := engaged.Err(); err != nil {
		return nil, a.unreadable(err)
	}
	a.failing.Store(false)
	return response, nil
}

func decideOne(ctx context.Context, table *routing.Table, item *routeapi.Item, engaged *engagement.Snapshot) routeapi.Answer {
	if err := item.Check(); err != nil {
		return routeapi.Answer{ID: item.ID, Error: err.Error()}
	}
	return table.Decide(ctx, item, engaged)
}

// count counts an answer by its reason, and logs it.
func (a *API) count(ctx context.Context, item *routeapi.Item, answer *routeapi.Answer) {
	reason := string(answer.Reason)
	switch {
	case answer.Error != "":
		reason = "error"
	case reason == "":
		reason = "home_only"
	}
	a.Resolved.WithLabelValues(reason).Inc()
	a.Log.LogAttrs(ctx, slog.LevelDebug, "resolved", slog.Int64("row", item.ID), slog.String("chat", item.ChatJID),
		slog.String("action", string(answer.Action)), slog.String("folder", answer.Folder),
		slog.String("reason", reason), slog.Int64("route", answer.RouteID))
}

// testRequest is a message to test against the current table or an edited one.
type testRequest struct {
	routeapi.Item
	Routes *[]msg.Route `json:"routes"` // nil for the current ones
}

// testResult is the decision on the message. Route is null if another rule than the table decided.
type testResult struct {
	Answer routeapi.Answer `json:"answer"`
	Route  *msg.Route      `json:"route"`
	Trace  []string        `json:"trace"` // the rows before the matching one, then the answer's trace
	// Warnings are about the whole table: rows that match nothing, groups that strangers can reach.
	Warnings []string `json:"warnings"`
}

func (a *API) testRoutes(r *http.Request) (*httpx.Answer, error) {
	request, err := httpx.Decode[testRequest](r)
	if err != nil {
		return nil, err
	}
	engaged := a.Engagement.Snapshot()
	table := a.Loader.Table()
	if request.Routes != nil {
		if table, err = table.WithRoutes(*request.Routes); err != nil {
			return nil, badRequest(err)
		}
	}

	decided := decideOne(r.Context(), table, &request.Item, engaged)
	if err := engaged.Err(); err != nil {
		return nil, a.unreadable(err)
	}
	if decided.Error != "" {
		return nil, apierr.New(apierr.BadRequest, "%s", decided.Error)
	}
	return &httpx.Answer{Status: http.StatusOK, Body: testResult{
		Answer: decided,
		Route:  table.Route(decided.RouteID),
		Trace:  slices.Concat(table.Explain(&request.Item, maxExplained), decided.Trace),

		Warnings: append(routecheck.Lines(table.Warnings(), routecheck.MaxLines), table.Notes()...),
	}}, nil
}
