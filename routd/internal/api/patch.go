package api

import (
	"encoding/json"
	"net/http"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/routd/internal/routing"
	"arizuko/routd/internal/rows"
)

// patchGroup changes the fields in the body and keeps the rest, in one transaction: two changes of different settings
// never undo each other.
func (a *API) patchGroup(r *http.Request) (*httpx.Answer, error) {
	folder := folderOf(r)
	patch, err := httpx.Decode[routeapi.GroupPatch](r)
	if err != nil {
		return nil, err
	}
	var g msg.Group
	err = a.write(r.Context(), func(tx *store.Tx) error {
		stored, err := tx.Group(r.Context(), folder)
		if err = orNoGroup(folder, stored != nil, err); err != nil {
			return err
		}
		g = *stored
		if patch.Name != nil {
			g.Name = *patch.Name
		}
		if len(patch.Config) > 0 {
			if g.Config, err = mergePatch(stored.Config, patch.Config); err != nil {
				return badRequest(err)
			}
		}
		if err := routing.CheckGroup(g); err != nil {
			return badRequest(err)
		}
		if _, err = rows.UpdateGroup(tx, &g); err != nil {
			return err
		}
		return a.audit(r).groupChanged(tx, stored, &g)
	})
	if err != nil {
		return nil, err
	}
	return &httpx.Answer{Status: http.StatusOK, Body: g}, nil
}

// mergePatch applies a JSON merge patch (RFC 7396) to an object.
func mergePatch(config, patch json.RawMessage) (json.RawMessage, error) {
	change, ok := object(patch)
	if !ok {
		return nil, apierr.New(apierr.BadRequest, `config: must be a JSON object, as in {"agent":{"name":"codex"}}`)
	}
	merged, ok := object(config)
	if !ok {
		return nil, apierr.New(apierr.BadRequest, "the stored config is no JSON object: replace it by PUT")
	}
	return json.Marshal(merge(merged, change))
}

// merge changes and returns into. Numbers stay as they were written.
func merge(into, change map[string]any) map[string]any {
	for name, value := range change {
		part, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case isObject:
			below, _ := into[name].(map[string]any)
			if below == nil {
				below = map[string]any{}
			}
			into[name] = merge(below, part)
		default:
			into[name] = value
		}
	}
	return into
}

func object(text json.RawMessage) (fields map[string]any, ok bool) {
	all, err := value(text)
	fields, ok = all.(map[string]any)
	return fields, ok && err == nil
}
