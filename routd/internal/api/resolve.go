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
)

// maxExplained bounds how many rows a test explains that do not match.
const maxExplained = 20

func (a *API) resolve(w http.ResponseWriter, r *http.Request) error {
	request, err := httpx.Decode[routeapi.Request](r)
	if err != nil {
		return err
	}
	if n := len(request.Items); n > routeapi.MaxItems {
		return apierr.New(apierr.BadRequest, "%d items, at most %d are taken at once", n, routeapi.MaxItems)
	}
	engaged, err := a.Engagement.Snapshot(r.Context())
	if err != nil {
		return err
	}

	table := a.Loader.Table()
	response := routeapi.Response{Version: table.Version, Items: make([]routeapi.Answer, len(request.Items))}
	for i := range request.Items {
		response.Items[i] = table.Decide(r.Context(), &request.Items[i], engaged)
	}
	if err := engaged.Err(); err != nil {
		return err
	}

	for i := range response.Items {
		a.count(r.Context(), &request.Items[i], &response.Items[i])
	}
	failpoint.At(failpoint.Answering)
	httpx.JSON(w, http.StatusOK, response)
	return nil
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
}

func (a *API) testRoutes(w http.ResponseWriter, r *http.Request) error {
	request, err := httpx.Decode[testRequest](r)
	if err != nil {
		return err
	}
	engaged, err := a.Engagement.Snapshot(r.Context())
	if err != nil {
		return err
	}
	table := a.Loader.Table()
	if request.Routes != nil {
		if table, err = table.WithRoutes(*request.Routes); err != nil {
			return badRequest(err)
		}
	}

	answer := table.Decide(r.Context(), &request.Item, engaged)
	if err := engaged.Err(); err != nil {
		return err
	}
	if answer.Error != "" {
		return apierr.New(apierr.BadRequest, "%s", answer.Error)
	}
	httpx.JSON(w, http.StatusOK, testResult{
		Answer: answer,
		Route:  table.Route(answer.RouteID),
		Trace:  slices.Concat(table.Explain(&request.Item, maxExplained), answer.Trace),
	})
	return nil
}
