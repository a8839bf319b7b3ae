package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/routd/internal/routing"
)

// maxOverlap is how long a former secret of a hook may count.
const maxOverlap = 30 * 24 * time.Hour

// addHook adds a hook to the config of its group, with a secret.
func (a *API) addHook(r *http.Request) (*httpx.Answer, error) {
	n, err := httpx.Decode[routeapi.NewHook](r)
	if err != nil {
		return nil, err
	}
	n.Hook.ID = groupconfig.NewHookID()
	added := a.added(n.Folder+"."+n.Hook.ID, n.Hook.Kind, n.Secret)
	if to := n.Hook.To; to != "" && !a.Loader.Table().Routed(to, "", n.Folder) {
		return nil, apierr.New(apierr.BadRequest,
			"no route leads from %.200s to %.200s: answers go to a chat of the group", to, n.Folder)
	}
	err = a.changeHook(r, n.Folder, n.Name, &n.Hook, func(g msg.Group) error {
		if c, _ := groupconfig.Parse(g.Config); c.Hooks[n.Name].ID != "" {
			return apierr.New(apierr.Conflict, "group %s has a hook %.80s already", g.Folder, n.Name)
		}
		return nil
	}, func() error { return a.setSecret(n.Hook.ID, cmp.Or(n.Secret, added.Secret), 0) })
	return answer(http.StatusCreated, added, err)
}

// added describes a hook to its operator: with a new secret, unless one is given.
func (a *API) added(id string, kind groupconfig.HookKind, given string) routeapi.HookAdded {
	h := routeapi.HookAdded{ID: id, URL: a.Dashd.Public + hookPath(id)}
	if given == "" {
		h.Secret = hooks.NewSecret(kind)
	}
	return h
}

func hookPath(id string) string { return (&url.URL{Path: "/hook/" + id}).EscapedPath() }

func (a *API) setSecret(id, secret string, overlap time.Duration) error {
	if err := hooks.CheckSecret(secret); err != nil {
		return badRequest(err)
	}
	return hooks.SetSecret(a.Data, id, secret, overlap, a.Now())
}

// changeHook sets a hook of a group, or removes it if it is nil. It calls before first, and then once the new config
// has no mistakes.
func (a *API) changeHook(r *http.Request, folder, name string, h *groupconfig.Hook, before func(msg.Group) error,
	then func() error) error {
	_, err := a.changeGroup(r, folder, func(g msg.Group) (msg.Group, error) {
		patch, err := json.Marshal(map[string]any{"hooks": map[string]any{name: h}})
		if err == nil {
			err = before(g)
		}
		if err != nil {
			return g, err
		}
		if g.Config, err = mergePatch(g.Config, patch); err != nil {
			return g, err
		}
		if err := routing.CheckGroup(g); err != nil {
			return g, badRequest(err)
		}
		return g, then()
	})
	return err
}

// hookOf finds a hook by the end of its address.
func (a *API) hookOf(ctx context.Context, id string) (folder, name string, h groupconfig.Hook, err error) {
	folder = msg.AddressedFolder(msg.PlatformHook + ":" + id)
	g, err := a.Store.Group(ctx, folder)
	if err != nil {
		return "", "", h, a.unreadable(err)
	}
	ok := g != nil
	if ok {
		name, h, ok = groupconfig.ReadHook(g.Config, strings.TrimPrefix(id, folder+"."))
	}
	if !ok {
		err = apierr.New(apierr.NotFound, "there is no hook %.300q", id)
	}
	return folder, name, h, err
}

// deleteHook removes a hook with its secret.
func (a *API) deleteHook(r *http.Request) (*httpx.Answer, error) {
	id := chi.URLParam(r, "*")
	if plain, err := url.PathUnescape(id); err == nil {
		id = plain
	}
	folder, name, h, err := a.hookOf(r.Context(), id)
	if err == nil {
		err = a.changeHook(r, folder, name, nil, func(msg.Group) error { return nil },
			func() error { return hooks.RemoveSecrets(a.Data, h.ID) })
	}
	return answer(http.StatusNoContent, nil, err)
}

// replaceSecret gives a hook a new secret. The former one counts for a while.
func (a *API) replaceSecret(r *http.Request) (*httpx.Answer, error) {
	c, err := httpx.Decode[routeapi.HookChange](r)
	if err != nil {
		return nil, err
	}
	folder, name, h, err := a.hookOf(r.Context(), c.ID)
	if err != nil {
		return nil, err
	}
	overlap := time.Duration(c.Overlap) * time.Second
	if overlap < 0 || overlap > maxOverlap {
		return nil, apierr.New(apierr.BadRequest, "overlap_seconds must be from 0 to %.0f", maxOverlap.Seconds())
	}
	changed := a.added(c.ID, h.Kind, c.Secret)
	err = a.write(r.Context(), func(tx *store.Tx) error {
		if err := a.audit(r).put(tx, "replace hook secret", "%s of %s", name, folder); err != nil {
			return err
		}
		return a.setSecret(h.ID, cmp.Or(c.Secret, changed.Secret), overlap)
	})
	return answer(http.StatusOK, changed, err)
}

// testHook sends dashd a delivery as the hook's sender would.
func (a *API) testHook(r *http.Request) (*httpx.Answer, error) {
	c, err := httpx.Decode[routeapi.HookChange](r)
	if err != nil {
		return nil, err
	}
	_, _, h, err := a.hookOf(r.Context(), c.ID)
	if err != nil {
		return nil, err
	}
	event, body, err := hooks.Sample(h.Kind, c.Event)
	if err != nil {
		return nil, badRequest(err)
	}
	secrets, err := hooks.Secrets(a.Data, h.ID, a.Now())
	if err != nil {
		return nil, apierr.New(apierr.Conflict, "the secret of the hook cannot be read: %w", err)
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, a.Dashd.Client.Base+hookPath(c.ID),
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = hooks.Sign(h, secrets[0], event, "test-"+rand.Text(), body, a.Now())
	res, err := a.Dashd.Client.HTTP.Do(req)
	if err != nil {
		return nil, apierr.New(apierr.Unavailable, "dashd does not answer: %w", err)
	}
	defer res.Body.Close()
	tested := routeapi.HookTested{Event: event, Status: res.StatusCode}
	_ = json.NewDecoder(res.Body).Decode(&tested) // another program's answer says nothing
	return answer(http.StatusOK, tested, nil)
}
