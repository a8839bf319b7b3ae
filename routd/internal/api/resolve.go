package api

import (
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
	view, err := a.Engagement.View(r.Context())
	if err != nil {
		return err
	}
	table := a.Live.Table()
	response := routeapi.Response{Version: table.Version, Items: make([]routeapi.Answer, len(request.Items))}
	for i := range request.Items {
		answer := table.Decide(r.Context(), &request.Items[i], view)
		response.Items[i] = answer
		a.Resolved.WithLabelValues(reasonLabel(answer)).Inc()
	}
	if err := view.Err(); err != nil {
		return err
	}
	failpoint.At(failpoint.Answering)
	httpx.JSON(w, http.StatusOK, response)
	return nil
}

func reasonLabel(answer routeapi.Answer) string {
	switch {
	case answer.Error != "":
		return "error"
	case answer.Reason == "":
		return "home_only"
	}
	return string(answer.Reason)
}

// trial is a message to try on the table in force or on an edited one.
type trial struct {
	routeapi.Item
	Routes *[]msg.Route `json:"routes"` // nil means those in force
}

// verdict is what would become of a trial's message. Route is null if another rule than the
// table decided.
type verdict struct {
	Answer routeapi.Answer `json:"answer"`
	Route  *msg.Route      `json:"route"`
	Trace  []string        `json:"trace"` // the rows before the matching one, then the answer's trace
}

func (a *API) testRoutes(w http.ResponseWriter, r *http.Request) error {
	try, err := httpx.Decode[trial](r)
	if err != nil {
		return err
	}
	view, err := a.Engagement.View(r.Context())
	if err != nil {
		return err
	}
	table := a.Live.Table()
	if try.Routes != nil {
		if table, err = table.WithRoutes(*try.Routes); err != nil {
			return badRequest(err)
		}
	}
	answer := table.Decide(r.Context(), &try.Item, view)
	if err := view.Err(); err != nil {
		return err
	}
	if answer.Error != "" {
		return apierr.New(apierr.BadRequest, "%s", answer.Error)
	}
	httpx.JSON(w, http.StatusOK, verdict{
		Answer: answer,
		Route:  table.Route(answer.RouteID),
		Trace:  slices.Concat(table.Explain(&try.Item, maxExplained), answer.Trace),
	})
	return nil
}
