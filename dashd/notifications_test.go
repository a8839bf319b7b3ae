package main

import (
	"encoding/base64"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	chromium "arizuko/pkg/testkit/browser"
	"arizuko/pkg/webpush"
	"arizuko/pkg/webpush/webpushtest"
)

const contact = "PUSH_CONTACT=mailto:ops@example.org"

func subscription(s webpush.Subscription) url.Values {
	return url.Values{"endpoint": {s.Endpoint}, "p256dh": {base64.RawURLEncoding.EncodeToString(s.Key)}, "auth": {base64.RawURLEncoding.EncodeToString(s.Auth)}}
}

func TestNotifications_DeviceIsAddedTestedChangedAndRemoved(t *testing.T) {
	data := dataFolder(t)
	p := serve(t, data, contact)
	service := webpushtest.New(t)
	p.push.Client.HTTP.Transport = service.Client().Transport
	b := p.operator()
	contains(t, b.get("/notifications").body, `data-key="`+p.push.Client.PublicKey()+`"`, "No device gets notifications.")
	contains(t, b.submit("/notifications", subscription(service.Subscription("a-browser"))).body, "Notifications are on here.", "A browser on another system", "No notice was sent yet.", `value="answer" checked`, `data-end="`)
	shell(t, data, `INSERT INTO push_subscriptions (id, login, endpoint, p256dh, auth, device, created_at) VALUES (70, 'web:other', 'https://push.example/x', 'BA', 'AA', 'Of another login', 1)`)
	page := b.get("/notifications").body
	id := regexp.MustCompile(`/notifications/\d+`).FindString(page)
	if strings.Contains(page, "Of another login") || strings.Contains(page, service.URL) {
		t.Errorf("the page shows what it must not: %s", page)
	}
	contains(t, b.submit(id, url.Values{"do": {"test"}}).body, "The test was sent to A browser on another system.")
	if all := service.Messages(); len(all) != 1 || !strings.Contains(all[0].Payload, "Notifications work") || all[0].Subject != "mailto:ops@example.org" {
		t.Errorf("sent %+v", all)
	}
	page = b.submit(id, url.Values{"do": {"save"}, "kind": {"problem", "<b>"}}).body
	contains(t, page, "was saved.", `value="answer" aria-label`, `value="question" aria-label`, `value="problem" checked`)
	contains(t, b.submit("/notifications/70", url.Values{"do": {"remove"}}).body, "There is no such device.")
	service.Close()
	contains(t, b.submit(id, url.Values{"do": {"test"}}).body, "The test was not sent")
	contains(t, b.submit(id, url.Values{"do": {"remove"}}).body, "was removed.", "No device gets notifications.")
}

func TestNotifications_WrongSubscription_Refused(t *testing.T) {
	b := serve(t, dataFolder(t), contact).operator()
	for _, s := range []webpush.Subscription{{}, {Endpoint: "http://push.example/x", Key: []byte{4}, Auth: make([]byte, 16)}} {
		contains(t, b.submit("/notifications", subscription(s)).body, "This browser can&#39;t be notified", "No device gets notifications.")
	}
}

func TestNotifications_WithoutContact_PageSaysWhatToSet(t *testing.T) {
	b := serve(t, dataFolder(t)).operator()
	page := b.get("/notifications").body
	contains(t, page, "PUSH_CONTACT", "DASH_PUBLIC_URL")
	if strings.Contains(page, "push.js") {
		t.Error("it offers notifications")
	}
	if p := serve(t, dataFolder(t), "DASH_PUBLIC_URL=https://chat.example"); p.push.Client == nil {
		t.Error("DASH_PUBLIC_URL with https is no contact")
	}
}

// TestWorker_NeedsNoLogin_KeepsTheShellAlone fetches what the service worker keeps.
func TestWorker_NeedsNoLogin_KeepsTheShellAlone(t *testing.T) {
	b := serve(t, dataFolder(t)).browser()
	a := b.must(200, "GET", "/sw.js", "")
	if a.Get("Cache-Control") != "no-cache" || !strings.HasPrefix(a.Get("Content-Type"), "text/javascript") {
		t.Errorf("%v", a.Header)
	}
	first, _, _ := strings.Cut(a.body, "\n")
	kept := regexp.MustCompile(`"(/[^"]+)"`).FindAllStringSubmatch(first, -1)
	if len(kept) < 4 {
		t.Fatalf("it keeps %s", first)
	}
	for _, path := range kept {
		if path[1] != "/offline" && !strings.HasPrefix(path[1], "/assets/") {
			t.Errorf("it keeps %s", path[1])
		}
		b.must(200, "GET", path[1], "")
	}
	page := b.get("/offline").body
	contains(t, page, "Try again", `rel="manifest"`)
	manifest := regexp.MustCompile(`/assets/[^"]+webmanifest`).FindString(page)
	if a := b.must(200, "GET", manifest, ""); a.Get("Content-Type") != "application/manifest+json" {
		t.Errorf("manifest: %v", a.Header)
	} else {
		for _, icon := range regexp.MustCompile(`icon-[a-z0-9]+\.png`).FindAllString(a.body, -1) {
			if png := b.must(200, "GET", filepath.Dir(manifest)+"/"+icon, ""); png.Get("Content-Type") != "image/png" || !strings.HasPrefix(png.body, "\x89PNG") {
				t.Errorf("%s: %v", icon, png.Header)
			}
		}
	}
}

// TestServiceWorker_OfflineAndPush gives a browser what dashd sent to its push service, follows the notice to its chat, and
// shows a page while dashd is down. The headless browser shows no notices: what it was asked to show is noted.
func TestServiceWorker_OfflineAndPush(t *testing.T) {
	b := chromium.Start(t)
	data := dataFolder(t)
	p := serve(t, data, contact)
	service := webpushtest.New(t)
	p.push.Client.HTTP.Transport = service.Client().Transport
	site := "http://" + p.Addr
	tab := b.Open(t)
	tab.Visit(p.first)
	tab.Visit(site + "/chat/main/")
	tab.WaitConnected()
	tab.Wait(`navigator.serviceWorker.controller`)
	kept := chromium.Await[[]string](tab, `caches.keys().then(async (names) => (await (await caches.open(names[0])).keys()).map(({ url }) => new URL(url).pathname))`)
	if len(kept) != 4 {
		t.Errorf("it keeps %v", kept)
	}
	post := `((path, form) => fetch(path, { method: "POST", body: new URLSearchParams(form) }).then((r) => r.text()))`
	page := chromium.Await[string](tab, post+`("/notifications", "`+subscription(service.Subscription("a-browser")).Encode()+`")`)
	chromium.Await[string](tab, post+`("`+regexp.MustCompile(`/notifications/\d+`).FindString(page)+`", "do=test")`)
	sent := service.Messages()
	if len(sent) != 1 {
		t.Fatalf("sent %+v", sent)
	}
	worker := b.ServiceWorker(t, site)
	chromium.Eval[bool](worker, `(globalThis.shown = new Promise((resolve) => {
		ServiceWorkerRegistration.prototype.showNotification = async (title, { body, tag, data }) => resolve([title, body, tag, data].join("|"));
	}), true)`)
	tab.Push(site, sent[0].Payload)
	if got := chromium.Await[string](worker, `shown`); got != "arizuko|Notifications work|test|/" {
		t.Errorf("shown: %q", got)
	}
	// A click by a script may open no window: what would happen is noted.
	click := `(async (path) => {
		const done = [];
		WindowClient.prototype.focus = async function () { done.push("focus " + new URL(this.url).pathname); };
		clients.openWindow = async (path) => { done.push("open " + path); };
		const notification = { data: path, close() { done.push("close"); } };
		dispatchEvent(Object.assign(new ExtendableEvent("notificationclick"), { notification }));
		while (done.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
		return done.join();
	})`
	for path, want := range map[string]string{"/chat/main/": "close,focus /chat/main/", "/chat/other/": "close,open /chat/other/"} {
		if got := chromium.Await[string](worker, click+`("`+path+`")`); got != want {
			t.Errorf("a click on a notice of %s: %s, want %s", path, got, want)
		}
	}
	p.stop()
	tab.Visit(site + "/chat/main/")
	tab.Wait(`document.body.innerText.includes("dashd cannot be reached")`)
	if style := chromium.Eval[int](tab, `document.styleSheets[0].cssRules.length`); style == 0 {
		t.Error("the page has no style")
	}
	tab.CheckFits()
}
