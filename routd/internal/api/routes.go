package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
	"arizuko/routd/internal/rows"
)

func (a *API) listRoutes(r *http.Request) (*httpx.Answer, error) {
	routes, err := a.Store.Routes(r.Context())
	if err != nil {
		return nil, a.unreadable(err)
	}
	if routes == nil {
		routes = []msg.Route{} // [] rather than null
	}
	return &httpx.Answer{Status: http.StatusOK, Body: routeapi.Table{Digest: routeapi.Digest(routes), Routes: routes}},
		nil
}

func (a *API) addRoute(r *http.Request) (*httpx.Answer, error) {
	route, target, err := decodeRoute(r)
	if err != nil {
		return nil, err
	}
	if route.ID != 0 {
		return nil, apierr.New(apierr.BadRequest, "a new route has no id: PUT /v1/routes/%d changes that one", route.ID)
	}
	err = a.write(r.Context(), func(tx *store.Tx) error {
		if err := checkRegistered(r.Context(), tx, target.Folder); err != nil {
			return err
		}
		if err := tx.PutRoute(&route); err != nil {
			return err
		}
		return a.audit(r).route(tx, nil, &route)
	})
	return answer(http.StatusCreated, route, err)
}

func (a *API) replaceRoute(r *http.Request) (*httpx.Answer, error) {
	id, err := routeID(r)
	if err != nil {
		return nil, err
	}
	route, target, err := decodeRoute(r)
	if err != nil {
		return nil, err
	}
	if route.ID != 0 && route.ID != id {
		return nil, apierr.New(apierr.BadRequest, "the body is about route %d", route.ID)
	}
	route.ID = id
	err = a.write(r.Context(), func(tx *store.Tx) error {
		if err := checkRegistered(r.Context(), tx, target.Folder); err != nil {
			return err
		}
		before, err := rows.Route(r.Context(), tx.Reader, id)
		if err = orNoRoute(id, before != nil, err); err != nil {
			return err
		}
		if _, err = rows.UpdateRoute(tx, &route); err != nil {
			return err
		}
		return a.audit(r).route(tx, before, &route)
	})
	return answer(http.StatusOK, route, err)
}

func (a *API) deleteRoute(r *http.Request) (*httpx.Answer, error) {
	id, err := routeID(r)
	if err != nil {
		return nil, err
	}
	err = a.write(r.Context(), func(tx *store.Tx) error {
		before, err := rows.Route(r.Context(), tx.Reader, id)
		if err = orNoRoute(id, before != nil, err); err != nil {
			return err
		}
		if _, err = rows.DeleteRoute(tx, id); err != nil {
			return err
		}
		return a.audit(r).route(tx, before, nil)
	})
	return answer(http.StatusNoContent, nil, err)
}

// decodeRoute reads a row and refuses an invalid one.
func decodeRoute(r *http.Request) (msg.Route, match.Target, error) {
	route, err := httpx.Decode[msg.Route](r)
	if err != nil {
		return route, match.Target{}, err
	}
	normalize(&route)
	target, err := routecheck.Route(route)
	if err != nil {
		return route, target, badRequest(err)
	}
	return route, target, nil
}

// normalize removes white space that means nothing.
func normalize(r *msg.Route) {
	r.Match = strings.Join(strings.Fields(r.Match), " ")
	r.Impulse = compact(r.Impulse)
}

// compact removes the white space of a JSON value; null becomes nil.
func compact(value json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(value) == 0 || json.Compact(&b, value) != nil || b.String() == "null" {
		return nil
	}
	return b.Bytes()
}

// checkRegistered refuses a target's folder that is not a group; targets without one have "".
func checkRegistered(ctx context.Context, tx *store.Tx, folder string) error {
	if folder == "" {
		return nil
	}
	g, err := tx.Group(ctx, folder)
	if err == nil && g == nil {
		err = apierr.New(apierr.BadRequest, "folder %s is not registered", folder)
	}
	return err
}

func routeID(r *http.Request) (int64, error) {
	text := chi.URLParam(r, "id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, apierr.New(apierr.BadRequest, "a route's id is a number, not %.80q", text)
	}
	return id, nil
}

func orNoRoute(id int64, found bool, err error) error {
	if err == nil && !found {
		err = apierr.New(apierr.NotFound, "there is no route %d", id)
	}
	return err
}
