package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

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
	if to := n.Hook.To; to != "" && !a.Loader.Table().Routed(to, "", n.Folder) {
		return nil, apierr.New(apierr.BadRequest,
			"no route leads from %.200s to %.200s: answers go to a chat of the group", to, n.Folder)
	}
	n.Hook.ID = groupconfig.NewHookID()
	var added *routeapi.HookAdded
	err = a.changeHook(r, n.Folder, n.Name, &n.Hook, func() (err error) {
		added, err = a.setSecret(n.Folder+"."+n.Hook.ID, n.Hook, n.Secret, 0)
		return err
	})
	return answer(http.StatusCreated, added, err)
}

// setSecret gives a hook a secret: a new one, unless one is given. id is the end of the hook's address.
func (a *API) setSecret(id string, h groupconfig.Hook, given string, overlap time.Duration) (*routeapi.HookAdded,
	error) {
	added := routeapi.HookAdded{ID: id, URL: a.Dashd.Public + hookPath(id)}
	if given == "" {
		added.Secret = hooks.NewSecret(h.Kind)
	}
	return &added, hooks.SetSecret(a.Data, h.ID, cmp.Or(given, added.Secret), overlap, a.Now())
}

func hookPath(id string) string { return (&url.URL{Path: "/hook/" + id}).EscapedPath() }

// changeHook adds a hook to a group, or removes it if it is nil. It calls then once the new config has no mistakes.
func (a *API) changeHook(r *http.Request, folder, name string, h *groupconfig.Hook, then func() error) error {
	_, err := a.changeGroup(r, folder, func(g msg.Group) (msg.Group, error) {
		if c, _ := groupconfig.Parse(g.Config); h != nil && c.Hooks[name].ID != "" {
			return g, apierr.New(apierr.Conflict, "group %s has a hook %.80s already", folder, name)
		}
		patch, err := json.Marshal(map[string]any{"hooks": map[string]any{name: h}})
		if err == nil {
			g.Config, err = mergePatch(g.Config, patch)
		}
		if err == nil {
			err = routing.CheckGroup(g)
		}
		if err != nil {
			return g, badRequest(err)
		}
		return g, then()
	})
	return err
}

// hookOf finds a hook by the end of its address.
func (a *API) hookOf(ctx context.Context, id string) (*hooks.Found, error) {
	h, err := hooks.Find(ctx, a.Store.Reader, id)
	if err == nil && h == nil {
		err = apierr.New(apierr.NotFound, "there is no hook %.300q", id)
	}
	return h, a.unreadable(err)
}

// deleteHook removes a hook with its secret.
func (a *API) deleteHook(r *http.Request) (*httpx.Answer, error) {
	h, err := a.hookOf(r.Context(), httpx.Rest(r))
	if err == nil {
		err = a.changeHook(r, h.Folder, h.Name, nil, func() error { return hooks.RemoveSecrets(a.Data, h.ID) })
	}
	return answer(http.StatusNoContent, nil, err)
}

// replaceSecret gives a hook a new secret. The former one counts for a while.
func (a *API) replaceSecret(r *http.Request) (*httpx.Answer, error) {
	c, err := httpx.Decode[routeapi.HookChange](r)
	if err != nil {
		return nil, err
	}
	h, err := a.hookOf(r.Context(), c.ID)
	if err != nil {
		return nil, err
	}
	overlap := time.Duration(c.Overlap) * time.Second
	if overlap < 0 || overlap > maxOverlap {
		return nil, apierr.New(apierr.BadRequest, "overlap_seconds must be from 0 to %.0f", maxOverlap.Seconds())
	}
	var changed *routeapi.HookAdded
	err = a.write(r.Context(), func(tx *store.Tx) (err error) {
		if err = a.audit(r).put(tx, "replace hook secret", "%s of %s", h.Name, h.Folder); err == nil {
			changed, err = a.setSecret(c.ID, h.Hook, c.Secret, overlap)
		}
		return err
	})
	return answer(http.StatusOK, changed, err)
}

// testHook sends dashd a delivery as the hook's sender would.
func (a *API) testHook(r *http.Request) (*httpx.Answer, error) {
	c, err := httpx.Decode[routeapi.HookChange](r)
	if err != nil {
		return nil, err
	}
	h, err := a.hookOf(r.Context(), c.ID)
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
	req.Header = hooks.Sign(h.Hook, secrets[0], event, "test-"+rand.Text(), body, a.Now())
	res, err := a.Dashd.Client.HTTP.Do(req)
	if err != nil {
		return nil, apierr.New(apierr.Unavailable, "dashd does not answer: %w", err)
	}
	defer res.Body.Close()
	var answered struct {
		routeapi.HookTested
		Error struct{ Message string }
	}
	_ = json.NewDecoder(res.Body).Decode(&answered) // another program's answer says nothing
	if res.StatusCode != http.StatusAccepted {
		return nil, apierr.New(apierr.Conflict, "dashd refused the test delivery with %d: %s", res.StatusCode,
			answered.Error.Message)
	}
	answered.Event = event
	return answer(http.StatusOK, answered.HookTested, nil)
}
