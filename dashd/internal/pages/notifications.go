package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"arizuko/dashd/internal/rows"
)

// Notifications is the page of the browsers of a login that are notified.
type Notifications struct {
	Key     string // that browsers subscribe with, "" if there are no notices
	Devices []*rows.PushDevice
	Now     int64
}

// endpointEnd is the end of a device's endpoint, by which its browser finds it: the whole one is a secret.
func endpointEnd(d *rows.PushDevice) string { return d.Endpoint[max(0, len(d.Endpoint)-20):] }

// PushKinds are the kinds of notices, selected if a device has them on.
func PushKinds(d *rows.PushDevice) []Option {
	all := []Option{{Value: "answer", Text: "answers after a minute or more"},
		{Value: "question", Text: "questions for you"}, {Value: "problem", Text: "problems of this instance"}}
	for i, o := range all {
		all[i].Selected = strings.Contains(d.Kinds, o.Value)
	}
	return all
}

// offlinePath is the page for when dashd can't be reached.
const offlinePath = "/offline"

// Worker serves the service worker, and Offline the page that it keeps.
func (p *Pages) Worker(w http.ResponseWriter, _ *http.Request) {
	file := func(name string) string { return assetRoot + p.assets.version + "/" + name }
	shell, err := json.Marshal(map[string]any{"version": p.assets.version, "page": offlinePath,
		"icon": file("icon-192.png"), "files": []string{file("style.css"), file("icon.svg"), file("icon-192.png")}})
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	fmt.Fprintf(w, "const shell = %s;\n%s", shell, p.assets.files["sw.js"])
}

// Offline is described at Worker.
func (p *Pages) Offline(w http.ResponseWriter, _ *http.Request) {
	p.page(w, http.StatusOK, "offline.html", nil)
}
