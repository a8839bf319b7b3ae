package api

import (
	"context"
	"log/slog"
	"net/http"

	"arizuko/pkg/apierr"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/httpx"
	"arizuko/pkg/routeapi"
	"arizuko/routd/internal/engagement"
	"arizuko/routd/internal/routing"
)

func (a *API) resolve(r *http.Request) (*httpx.Answer, error) {
	request, err := httpx.Decode[routeapi.Request](r)
	if err != nil {
		return nil, err
	}
	response, err := a.answerAll(r.Context(), &request)
	return answer(http.StatusOK, response, err)
}

// answerAll answers the questions about rows.
func (a *API) answerAll(ctx context.Context, request *routeapi.Request) (*routeapi.Response, error) {
	if n := len(request.Items); n > routeapi.MaxItems {
		return nil, apierr.New(apierr.BadRequest, "%d items, at most %d are taken at once", n, routeapi.MaxItems)
	}
	response, err := a.decide(ctx, request.Items)
	if err != nil {
		return nil, err
	}
	for i := range response.Items {
		a.count(ctx, &request.Items[i], &response.Items[i])
	}
	failpoint.At(failpoint.Answering)
	return response, nil
}

// decide answers all items or none: they are decided in order, since one may claim for the next.
func (a *API) decide(ctx context.Context, items []routeapi.Item) (*routeapi.Response, error) {
	if len(items) == 0 { // gated asks whether it can ask
		if err := a.Engagement.CatchUp(ctx); err != nil {
			return nil, a.unreadable(err)
		}
	}
	engaged := a.Engagement.Snapshot()
	engaged.Read(ctx, items)
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

func decideOne(ctx context.Context, table *routing.Table, item *routeapi.Item,
	engaged *engagement.Snapshot) routeapi.Answer {
	if err := item.Check(); err != nil {
		return routeapi.Answer{ID: item.ID, Error: err.Error()}
	}
	return table.Resolve(ctx, item, engaged)
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
