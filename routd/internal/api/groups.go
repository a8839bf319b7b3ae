package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/httpx"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/routd/internal/routing"
	"arizuko/routd/internal/rows"
)

func (a *API) listGroups(r *http.Request) (*httpx.Answer, error) {
	groups, err := a.Store.Groups(r.Context())
	if err != nil {
		return nil, a.unreadable(err)
	}
	if groups == nil {
		groups = []msg.Group{} // [] rather than null
	}
	return &httpx.Answer{Status: http.StatusOK, Body: map[string][]msg.Group{"groups": groups}}, nil
}

func (a *API) getGroup(r *http.Request) (*httpx.Answer, error) {
	folder := httpx.Rest(r)
	g, err := a.Store.Group(r.Context(), folder)
	err = a.unreadable(err)
	return answer(http.StatusOK, g, orNoGroup(folder, g != nil, err))
}

// addGroup may be repeated: adding the same group again is not a conflict.
func (a *API) addGroup(r *http.Request) (*httpx.Answer, error) {
	g, err := decodeGroup(r, "")
	if err != nil {
		return nil, err
	}
	g.CreatedAt = a.Now().UnixMilli()
	status := http.StatusCreated
	err = a.write(r.Context(), func(tx *store.Tx) error {
		fresh, err := tx.PutGroup(&g)
		if err != nil {
			return err
		}
		if fresh {
			return a.audit(r).put(tx, "add group", "%s", g.Folder)
		}
		status = http.StatusOK
		stored, err := tx.Group(r.Context(), g.Folder)
		if err != nil {
			return err
		}
		if stored.Name != g.Name || !sameJSON(stored.Config, g.Config) {
			return apierr.New(apierr.Conflict,
				"group %s exists with another name or config: its page or PUT /v1/groups/%[1]s changes it", g.Folder)
		}
		g = *stored
		return nil
	})
	return answer(status, g, err)
}

func (a *API) replaceGroup(r *http.Request) (*httpx.Answer, error) {
	g, err := decodeGroup(r, httpx.Rest(r))
	if err != nil {
		return nil, err
	}
	return a.changeGroup(r, g.Folder, func(stored msg.Group) (msg.Group, error) {
		g.CreatedAt = stored.CreatedAt
		return g, nil
	})
}

// changeGroup reads and changes a group in one transaction: two changes of different settings never undo each other.
func (a *API) changeGroup(r *http.Request, folder string, change func(msg.Group) (msg.Group, error)) (*httpx.Answer,
	error) {
	var g msg.Group
	err := a.write(r.Context(), func(tx *store.Tx) error {
		stored, err := tx.Group(r.Context(), folder)
		if err = orNoGroup(folder, stored != nil, err); err != nil {
			return err
		}
		if g, err = change(*stored); err != nil {
			return err
		}
		if _, err = rows.UpdateGroup(tx, &g); err != nil {
			return err
		}
		return a.audit(r).groupChanged(tx, stored, &g)
	})
	return answer(http.StatusOK, g, err)
}

func (a *API) deleteGroup(r *http.Request) (*httpx.Answer, error) {
	folder := httpx.Rest(r)
	var own groupconfig.Config
	err := a.write(r.Context(), func(tx *store.Tx) error {
		g, err := tx.Group(r.Context(), folder)
		if err = orNoGroup(folder, g != nil, err); err != nil {
			return err
		}
		own, _ = groupconfig.Parse(g.Config) // it need not be valid any more
		if _, err := rows.DeleteGroup(tx, folder); err != nil {
			return err
		}
		if err := checkUnused(r.Context(), tx, folder); err != nil {
			return err
		}
		return a.audit(r).put(tx, "delete group", "%s", folder)
	})
	for _, h := range own.Hooks {
		if err == nil {
			err = hooks.RemoveSecrets(a.Data, h.ID)
		}
	}
	return answer(http.StatusNoContent, nil, err)
}

// checkUnused refuses to delete a group that routes lead to or that has groups below it.
func checkUnused(ctx context.Context, tx *store.Tx, folder string) error {
	groups, err := tx.Groups(ctx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if msg.Within(g.Folder, folder) {
			return apierr.New(apierr.Conflict, "group %s has the group %s below it", folder, g.Folder)
		}
	}
	routes, err := tx.Routes(ctx)
	if err != nil {
		return err
	}
	for _, route := range routes {
		if target, err := match.ParseTarget(route.Target); err == nil && target.Folder == folder {
			return apierr.New(apierr.Conflict, "route %d leads to group %s", route.ID, folder)
		}
	}
	return nil
}

// decodeGroup reads a group. folder is the one in the path, "" where the body must name it.
// created_at is ignored: clients may send the answer of a GET.
func decodeGroup(r *http.Request, folder string) (msg.Group, error) {
	g, err := httpx.Decode[msg.Group](r)
	if err != nil {
		return g, err
	}
	if g.Folder == "" {
		g.Folder = folder
	}
	if folder != "" && g.Folder != folder {
		return g, apierr.New(apierr.BadRequest, "the body is about group %.80q", g.Folder)
	}
	if g.Config = compact(g.Config); g.Config == nil {
		g.Config = json.RawMessage(`{}`)
	}
	if err := routing.CheckGroup(g); err != nil {
		return g, badRequest(err)
	}
	return g, nil
}

func orNoGroup(folder string, found bool, err error) error {
	if err == nil && !found {
		err = apierr.New(apierr.NotFound, "there is no group %.80q", folder)
	}
	return err
}

// sameJSON compares values, ignoring the order of keys.
func sameJSON(a, b json.RawMessage) bool {
	x, errX := value(a)
	y, errY := value(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func value(text json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // large numbers differ in their last digits too
	err = dec.Decode(&v)
	return v, err
}
