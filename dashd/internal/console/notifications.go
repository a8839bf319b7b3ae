package console

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/store"
)

const (
	notificationsPath = "/notifications"
	maxDevices        = 20
)

// devices are the browsers of the login.
func (c pushPages) devices(r *http.Request) ([]*rows.PushDevice, error) {
	all, err := rows.PushDevices(r.Context(), c.Store)
	return slices.DeleteFunc(all, func(d *rows.PushDevice) bool { return d.Login != login.Sender(r.Context()) }), err
}

func (c pushPages) show(r *http.Request) (*shown, error) {
	page := pages.Notifications{Now: c.Now().UnixMilli()}
	if c.Push.Client != nil {
		page.Key = c.Push.Client.PublicKey()
	}
	var err error
	page.Devices, err = c.devices(r)
	return &shown{data: page}, err
}

// add stores the subscription of the browser that sends it.
func (c pushPages) add(r *http.Request) (next, notice string, err error) {
	d := &rows.PushDevice{Login: login.Sender(r.Context()), Name: browserName(r.UserAgent()),
		CreatedAt: c.Now().UnixMilli()}
	d.Endpoint = r.PostForm.Get("endpoint")
	d.Key, _ = base64.RawURLEncoding.DecodeString(r.PostForm.Get("p256dh"))
	d.Auth, _ = base64.RawURLEncoding.DecodeString(r.PostForm.Get("auth"))
	if err := d.Check(); err != nil {
		return notificationsPath, "", apierr.New(apierr.BadRequest, "This browser can't be notified: %s.", err)
	}
	return notificationsPath, "Notifications are on here.", c.Push.Store.Write(r.Context(), func(tx *store.Tx) error {
		return rows.PutPushDevice(tx, d, maxDevices)
	})
}

// change saves the kinds of a browser, sends it a test, or removes it.
func (c pushPages) change(r *http.Request) (next, notice string, err error) {
	devices, err := c.devices(r)
	if err != nil {
		return notificationsPath, "", err
	}
	at := slices.IndexFunc(devices, func(d *rows.PushDevice) bool {
		return strconv.FormatInt(d.ID, 10) == chi.URLParam(r, "id")
	})
	if at < 0 {
		return notificationsPath, "", apierr.New(apierr.NotFound, "There is no such device.")
	}
	d := devices[at]
	switch r.PostForm.Get("do") {
	case "test":
		if err := c.Push.Send(r.Context(), d, rows.PushEvent{Key: "test", Name: "Notifications work"}); err != nil {
			return notificationsPath, "", apierr.New(apierr.Unavailable, "The test was not sent: %s.", err)
		}
		return notificationsPath, "The test was sent to " + pages.Line(d.Name) + ".", nil
	case "remove":
		notice = pages.Line(d.Name) + " was removed."
		err = c.Push.Store.Write(r.Context(), func(tx *store.Tx) error { return rows.DeletePushDevice(tx, d.ID) })
	case "save":
		d.Kinds = ""
		for _, o := range pages.PushKinds(d) {
			if slices.Contains(r.PostForm["kind"], o.Value) {
				d.Kinds += " " + o.Value
			}
		}
		notice = pages.Line(d.Name) + " was saved."
		err = c.Push.Store.Write(r.Context(), func(tx *store.Tx) error { return rows.SetPushKinds(tx, d.ID, d.Kinds) })
	}
	return notificationsPath, notice, err
}

// browserName names a browser by its user agent, as in Firefox on Android.
func browserName(agent string) string {
	first := func(names ...string) string {
		for _, name := range names {
			part, called, _ := strings.Cut(name, "=")
			if strings.Contains(agent, part) {
				return called
			}
		}
		return "another system"
	}
	return first("Edg=Edge", "OPR/=Opera", "Firefox/=Firefox", "FxiOS=Firefox", "Chrome/=Chrome", "CriOS=Chrome",
		"Safari/=Safari", "=A browser") + " on " + first("Android=Android", "iPhone=iPhone", "iPad=iPad",
		"Windows=Windows", "Mac=Mac", "CrOS=ChromeOS", "Linux=Linux")
}
