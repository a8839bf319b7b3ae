package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
)

// open are the routes that need no login.
var open = map[string]bool{
	"GET /healthz": true, "GET /readyz": true, "GET /metrics": true, "HEAD /healthz": true, "HEAD /readyz": true, "HEAD /metrics": true,
	"GET /login": true, "HEAD /login": true, "POST /login": true, "POST /logout": true,
	"GET /sw.js": true, "GET /offline": true,
	"POST /hook/*": true, // deliveries are signed
}

func TestRoutes_WithoutLogin_Refused(t *testing.T) {
	p := serve(t, dataFolder(t))
	b := p.browser()
	closed := 0
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	err := chi.Walk(p.Router, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if open[method+" "+route] || strings.HasPrefix(route, "/assets/") {
			return nil
		}
		closed++
		for _, path := range []string{"main", "main/", "main/messages", "main/topics", "main/events", "none", ""} {
			path = parameter.ReplaceAllString(strings.Replace(route, "*", path, 1), "1")
			for _, headers := range [][]string{
				{"Accept: application/json"},
				{"Accept: text/event-stream", "Authorization: Bearer guess"},
				{"Accept: */*", "Authorization: Basic " + secret},
				{"Accept: */*", "Authorization: Bearer"},
				{"Accept: */*", "Cookie: arizuko=" + secret},
				{"Accept: */*", "Cookie: arizuko=v1.eyJpZCI6IngiLCJsb2dpbiI6IndlYjpvcGVyYXRvciIsImV4cGlyZXMiOjk5OTk5OTk5OTl9.AAAA"},
			} {
				if a := b.do(method, path, "{}", headers...); a.status != 401 || a.kind() != "unauthorized" || a.Get("Www-Authenticate") == "" {
					t.Errorf("%s %s %s: %d %.200s", method, path, headers, a.status, a.body)
				}
			}
			want := http.StatusUnauthorized
			if method == http.MethodGet {
				want = http.StatusSeeOther
			}
			a := b.do(method, path, "{}")
			if to := a.Get("Location"); a.status != want || want == http.StatusSeeOther && to != "/login?next="+url.QueryEscape(path) {
				t.Errorf("%s %s as a page: %d to %s", method, path, a.status, to)
			}
		}
		return nil
	})
	if err != nil || closed < 8 {
		t.Errorf("%d routes want a login (%v)", closed, err)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/login"} {
		b.must(200, "GET", path, "")
	}
	page := b.get("/login").body
	_, style, _ := strings.Cut(page, `href="/assets/`)
	style, _, _ = strings.Cut(style, `"`)
	if a := b.must(200, "GET", "/assets/"+style, ""); a.body == "" {
		t.Error("the login page has no style")
	}
}

func TestRoutes_SecurityHeaders(t *testing.T) {
	p := serve(t, dataFolder(t))
	b := p.operator()
	for _, path := range []string{"/login", "/", "/chat/", "/chat/main", "/chat/none", "/status", "/chat/main/messages"} {
		a := b.get(path)
		if policy := a.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || a.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, a.Header)
		}
	}
}

// newLink asks for a link as dashd login does.
func (p *process) newLink() string {
	p.t.Helper()
	var link struct{ URL string }
	if err := json.Unmarshal([]byte(p.program().must(200, "POST", "/v1/login-link", "").body), &link); err != nil {
		p.t.Fatal(err)
	}
	return link.URL
}

func TestLoginLink_Printed_LogsInOnce(t *testing.T) {
	p := serve(t, dataFolder(t))
	b := p.browser()
	if a := b.must(303, "GET", p.first+"&next=/chat/main", ""); a.Get("Location") != "/chat/main" {
		t.Errorf("to %s", a.Get("Location"))
	}
	contains(t, b.must(200, "GET", "/chat/main", "").body, `data-folder="main"`)
	contains(t, p.browser().must(403, "GET", p.first, "").body, "used before", "dashd login")
	link := p.newLink()
	if !strings.HasPrefix(link, "http://"+p.Addr+"/login?token=") {
		t.Errorf("a new link: %s", link)
	}
	p.browser().must(303, "GET", link, "")
}

func TestLoginPassword_Set_ReplacesLink(t *testing.T) {
	p := serve(t, dataFolder(t), "DASH_PASSWORD="+password)
	if p.first != "http://"+p.Addr+"/login" {
		t.Errorf("printed %s", p.first)
	}
	b := p.browser()
	contains(t, b.must(200, "GET", "/login?next=/chat/main", "").body, `name="password"`, `value="/chat/main"`)
	a := b.form("/login", url.Values{"password": {password + "x"}, "next": {"/chat/main"}})
	contains(t, a.body, "not the password", `value="/chat/main"`)
	if a := b.form("/login", url.Values{"password": {password}, "next": {"/chat/main"}}); a.status != 303 || a.Get("Location") != "/chat/main" {
		t.Errorf("the right one: %d %s", a.status, a.body)
	}
	b.must(200, "GET", "/chat/main", "")
}

// The cases are those of package login: here is which origin counts as dashd's own.
func TestPost_OtherSite_Refused(t *testing.T) {
	p := serve(t, dataFolder(t), "DASH_PUBLIC_URL=http://chat.example")
	b := p.operator()
	const body = `{"text":"hi"}`
	for _, origin := range []string{"http://evil.example", "http://" + p.Addr + ".evil.example", "https://chat.example:8443"} {
		for _, path := range []string{"/chat/main/messages", "/login", "/logout"} {
			if a := b.do("POST", path, body, "Origin: "+origin, "Accept: */*"); a.status != 403 || a.kind() != "forbidden" {
				t.Errorf("%s %s: %d %s", path, origin, a.status, a.body)
			}
		}
	}
	contains(t, b.get("/chat/main/messages").body, `"messages":[]`)
	for _, origin := range []string{b.base, "http://chat.example"} {
		b.must(202, "POST", "/chat/main/messages", body, "Origin: "+origin)
	}
}

func TestHost_OtherNames_Refused(t *testing.T) {
	p := serve(t, dataFolder(t), "DASH_PUBLIC_URL=http://chat.example")
	b := p.operator()
	_, asset, _ := strings.Cut(b.get("/chat/main").body, `href="/assets/`)
	asset, _, _ = strings.Cut(asset, `"`)
	ask := func(b *browser, host, path string) int {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, b.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		if address, _ := url.Parse(b.base); b.http.Jar != nil { // the jar goes by req.Host
			for _, c := range b.http.Jar.Cookies(address) {
				req.AddCookie(c)
			}
		}
		res, err := b.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for _, path := range []string{"/", "/login", "/chat/main", "/chat/main/messages", "/events", "/status", "/assets/" + asset} {
		for _, host := range []string{"evil.example", "evil.example:8083", "dashd:8083"} {
			if got := ask(b, host, path); got != 403 {
				t.Errorf("%s at %s: %d", path, host, got)
			}
		}
		for _, host := range []string{"chat.example", "localhost:1"} {
			if got := ask(b, host, path); got >= 400 {
				t.Errorf("%s at %s: %d", path, host, got)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if got := ask(p.browser(), "dashd:8083", path); got != 200 {
			t.Errorf("%s: %d", path, got)
		}
	}
	if got := ask(p.program(), "dashd:8083", "/status"); got != 200 {
		t.Errorf("with the bearer: %d", got)
	}
}

func TestTrustedProxies_ForwardedHeadersCount(t *testing.T) {
	for _, test := range []struct {
		env    string
		secure bool
	}{{"TRUSTED_PROXIES=127.0.0.1", true}, {"TRUSTED_PROXIES=10.0.0.0/8", false}} {
		p := serve(t, dataFolder(t), test.env)
		a := p.browser().must(303, "GET", p.first, "", "X-Forwarded-Proto: https", "X-Forwarded-For: 198.51.100.7")
		if got := strings.Contains(a.Get("Set-Cookie"), "Secure"); got != test.secure {
			t.Errorf("%s: %s", test.env, a.Get("Set-Cookie"))
		}
		if got := strings.Contains(p.log.String(), "addr=198.51.100.7:0"); got != test.secure {
			t.Errorf("%s:\n%s", test.env, p.log)
		}
	}
}

func TestPrintLink_False_PrintsNothing(t *testing.T) {
	if p := serve(t, dataFolder(t), "DASH_PRINT_LINK=false"); p.first != "" {
		t.Errorf("printed %s", p.first)
	}
}

func TestLogout_EndsSession(t *testing.T) {
	data := dataFolder(t)
	p := serve(t, data)
	b, other := p.operator(), p.browser()
	other.must(303, "GET", p.newLink(), "")
	address, err := url.Parse(b.base)
	if err != nil {
		t.Fatal(err)
	}
	stolen := "Cookie: " + b.http.Jar.Cookies(address)[0].String()
	thief := p.browser()
	thief.must(200, "GET", "/chat/main", "", stolen)
	ended := make(chan struct{}, 2)
	for _, path := range []string{"/chat/main/events", "/events"} {
		next := b.events(path)
		go func() {
			for next("none") != "" {
			}
			ended <- struct{}{}
		}()
	}
	staysOpen := other.events("/chat/main/events")
	if a := b.form("/logout", nil); a.status != 303 || a.Get("Location") != "/login" {
		t.Errorf("logout: %d to %s", a.status, a.Get("Location"))
	}
	for range 2 {
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("a stream outlives the logout")
		}
	}
	queued(t, data, "still there")
	contains(t, staysOpen("message"), "still there")
	if left := b.http.Jar.Cookies(address); len(left) != 0 {
		t.Errorf("the browser keeps %v", left)
	}
	thief.must(303, "GET", "/chat/main", "", stolen)
	p.stop()
	p = serve(t, data)
	thief.base, other.base = "http://"+p.Addr, "http://"+p.Addr
	thief.must(401, "GET", "/chat/main/messages", "", stolen, "Accept: */*")
	other.must(200, "GET", "/chat/main", "")
	b.base = thief.base
	b.must(303, "POST", "/logout", "") // a second time
}
