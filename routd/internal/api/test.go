package api

import (
	"context"
	"net/http"
	"slices"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/routecheck"
	"arizuko/routd/internal/routing"
)

// maxExplained bounds how many rows a test explains that do not match.
const maxExplained = 20

// testRequest is a message to test against the current table or an edited one; or, with items, messages to test
// against both.
type testRequest struct {
	routeapi.Item
	Routes *[]msg.Route    `json:"routes"` // nil for the current ones
	Items  []routeapi.Item `json:"items"`
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
	if request.Items != nil {
		return a.compare(r.Context(), &request)
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

// compare decides on each message by the present and by the edited table, as if no group were engaged.
func (a *API) compare(ctx context.Context, request *testRequest) (*httpx.Answer, error) {
	switch {
	case request.Routes == nil:
		return nil, apierr.New(apierr.BadRequest, "items are compared with an edited table: routes is missing")
	case len(request.Items) > routeapi.MaxTested:
		return nil, apierr.New(apierr.BadRequest, "%d items, at most %d are tested at once", len(request.Items),
			routeapi.MaxTested)
	}
	present := a.Loader.Table()
	tested := routeapi.Tested{Items: []routeapi.TestedItem{}, Problems: routing.Problems(*request.Routes, present.Has)}
	if len(tested.Problems) > 0 {
		return &httpx.Answer{Status: http.StatusOK, Body: tested}, nil
	}
	edited, err := present.WithRoutes(*request.Routes)
	if err != nil {
		return nil, badRequest(err)
	}
	for i := range request.Items {
		item := &request.Items[i]
		if err := item.Check(); err != nil {
			return nil, apierr.New(apierr.BadRequest, "items[%d]: %w", i, err)
		}
		tested.Items = append(tested.Items, routeapi.TestedItem{
			ID: item.ID, Present: present.Resolve(ctx, item, routing.Unengaged{}),
			Edited: edited.Resolve(ctx, item, routing.Unengaged{}),
		})
		if ctx.Err() != nil {
			return nil, apierr.New(apierr.Unavailable, "%d of %d items tested within %s: test fewer at once", i,
				len(request.Items), questionTimeout)
		}
	}
	return &httpx.Answer{Status: http.StatusOK, Body: tested}, nil
}
