package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// hookOverlap is how long the former secret of a hook counts, in seconds.
const hookOverlap = 24 * 60 * 60

// hookPath is the page of a hook; id is the end of its address.
func hookPath(id string) string { return (&url.URL{Path: "/hooks/" + id}).String() }

// add asks routd to add a hook. The secret is in the notice alone. What was typed into a form that is refused stays
// there.
func (c hookPages) add(r *http.Request) (next, notice string, err error) {
	field := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	n := routeapi.NewHook{Folder: field("folder"), Name: field("hook"), Hook: groupconfig.Hook{
		Kind: groupconfig.HookKind(field("kind")), To: field("to"), Header: field("header"), Prefix: field("prefix"),
		Events: strings.FieldsFunc(field("events"), func(c rune) bool { return c == ',' || c == ' ' }),
	}}
	var added routeapi.HookAdded
	if err := c.ask(r.Context(), "routd", http.MethodPost, routeapi.HooksPath, n, &added); err != nil {
		return groupPath(n.Folder) + "?" + r.PostForm.Encode(), "", err
	}
	return hookPath(added.ID), fmt.Sprintf("The webhook %s was added. Give its sender the URL and the secret, which "+
		"is shown only now.\n%s\n%s", n.Name, added.URL, added.Secret), nil
}

// hookOf is the hook of a page, without what else the page shows.
func (c hookPages) hookOf(r *http.Request) (*pages.Hook, error) {
	id := httpx.Rest(r)
	h, err := hooks.Find(r.Context(), c.Store, id)
	if err == nil && h == nil {
		err = apierr.New(apierr.NotFound,
			"There is no webhook %.300q: it was removed, or its settings in the group's config are invalid.", id)
	}
	if err != nil {
		return nil, err
	}
	return &pages.Hook{Found: *h, ID: id, URL: c.Public + (&url.URL{Path: "/hook/" + id}).EscapedPath(),
		Now: c.Now().UnixMilli()}, nil
}

// show shows a hook and its last deliveries.
func (c hookPages) show(r *http.Request) (*shown, error) {
	h, err := c.hookOf(r)
	if err != nil {
		return nil, err
	}
	before, err := position(r.URL.Query())
	if err != nil {
		return nil, err
	}
	filter := rows.MessageFilter{Chat: h.JID, Direction: msg.In, Before: before, Limit: maxRows}
	list, err := rows.ListMessages(r.Context(), c.Store, filter)
	if err != nil {
		return nil, err
	}
	if h.Lines = list.Rows; list.Next != 0 {
		h.Next = older(r, list.Next)
	}
	h.Samples = hooks.SampleEvents(h.Kind)
	h.Refusals, err = rows.HookRefusals(r.Context(), c.Store, h.JID)
	return &shown{title: fmt.Sprintf("Webhook %s of %s", h.Name, h.Folder), data: h,
		up: []pages.Link{{Path: groupPath(h.Folder), Text: h.Folder}}}, err
}

// change makes the change to a hook that a form asks for: routd does it.
func (c hookPages) change(r *http.Request) (next, notice string, err error) {
	h, err := c.hookOf(r)
	if err != nil {
		return "/groups", "", err
	}
	ask := func(method, path string, in, out any) error {
		return c.ask(r.Context(), "routd", method, path, in, out)
	}
	next = hookPath(h.ID)
	switch do := r.PostForm.Get("do"); do {
	case "test":
		var t routeapi.HookTested
		err = ask(http.MethodPost, routeapi.HookTest, routeapi.HookChange{ID: h.ID, Event: r.PostForm.Get("event")}, &t)
		notice = fmt.Sprintf("The test delivery %s was accepted: %s as message %d.", t.Event, t.State, t.ID)
	case "secret":
		var changed routeapi.HookAdded
		err = ask(http.MethodPost, routeapi.HookSecret, routeapi.HookChange{ID: h.ID, Overlap: hookOverlap}, &changed)
		notice = "Give the sender the new secret, which is shown only now. The former one counts for 24 hours more.\n" +
			changed.Secret
	case "off", "on":
		off := map[string]any{"off": map[string]any{"off": true}[do]} // null for "on"
		patch := map[string]any{"config": map[string]any{"hooks": map[string]any{h.Name: off}}}
		err, notice = ask(http.MethodPatch, routeapi.GroupPath(h.Folder), patch, nil), "The webhook is "+do+"."
	case "delete":
		notice = "The webhook " + h.Name + " was removed. Its deliveries stay."
		if err = ask(http.MethodDelete, routeapi.HooksPath+"/"+url.PathEscape(h.ID), nil, nil); err == nil {
			next = groupPath(h.Folder)
		}
	default:
		err = apierr.New(apierr.BadRequest, "The form asks for nothing: open the page again.")
	}
	return next, notice, err
}
