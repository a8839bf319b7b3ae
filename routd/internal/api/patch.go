package api

import (
	"encoding/json"
	"net/http"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/routd/internal/routing"
)

// patchGroup changes the fields in the body and keeps the rest.
func (a *API) patchGroup(r *http.Request) (*httpx.Answer, error) {
	patch, err := httpx.Decode[routeapi.GroupPatch](r)
	if err != nil {
		return nil, err
	}
	return a.changeGroup(r, httpx.Rest(r), func(g msg.Group) (_ msg.Group, err error) {
		if patch.Name != nil {
			g.Name = *patch.Name
		}
		if len(patch.Config) > 0 {
			g.Config, err = mergePatch(g.Config, patch.Config)
		}
		if err == nil {
			err = routing.CheckGroup(g)
		}
		if err != nil {
			err = badRequest(err)
		}
		return g, err
	})
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
