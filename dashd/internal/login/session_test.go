package login_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"arizuko/dashd/internal/login"
)

func TestCookie_Restart_Valid(t *testing.T) {
	h := open(t, password)
	c := entered(t, h.post("open sesame", nil), page)
	for name, tc := range map[string]struct {
		change func(*login.Config)
		want   bool
	}{
		"restart":      {password, true},
		"new password": {func(cfg *login.Config) { cfg.Password = "other" }, false},
		"no password":  {nil, false},
		"new secret":   {func(cfg *login.Config) { password(cfg); cfg.Secret = "other" }, false},
	} {
		h.restart(tc.change)
		if got := h.isIn(c); got != tc.want {
			t.Errorf("%s: in = %v", name, got)
		}
	}
}

func TestCookie_Expires(t *testing.T) {
	h := open(t, nil)
	c := entered(t, h.get(h.newLink()), "/chat/")
	h.now = h.now.Add(30*24*time.Hour - time.Second)
	if !h.isIn(c) {
		t.Error("out too early")
	}
	h.now = h.now.Add(time.Second)
	if h.isIn(c) {
		t.Error("in too late")
	}
}

func TestCookie_Forged_Refused(t *testing.T) {
	h := open(t, nil)
	c := entered(t, h.get(h.newLink()), "/chat/")
	parts := strings.Split(c.Value, ".")
	enc := base64.RawURLEncoding.EncodeToString
	admin := enc([]byte(`{"id":"a","login":"web:operator","expires":99999999999}`))
	for _, value := range []string{
		"", ".", "..", "v1", "v1..", "v1." + admin, "v1." + admin + ".", "v1." + admin + "." + parts[2], "v2." + parts[1] + "." + parts[2],
		parts[1] + "." + parts[2], parts[0] + "." + parts[1], c.Value + ".", c.Value + "A", "v1." + parts[1] + "." + parts[2][:20], strings.ToUpper(c.Value),
		"v1." + admin + "." + enc(make([]byte, 32)), strings.Repeat(".", 3000),
	} {
		if h.isIn(&http.Cookie{Name: "arizuko", Value: value}) {
			t.Errorf("%q lets in", value)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		forged := []byte(c.Value)
		i := rapid.IntRange(0, len(forged)-2).Draw(rt, "at") // the last character carries unused bits
		forged[i] = rapid.SampledFrom([]byte("abcXYZ019-_.")).Draw(rt, "byte")
		if string(forged) != c.Value && h.isIn(&http.Cookie{Name: "arizuko", Value: string(forged)}) {
			rt.Errorf("%s for %s", forged, c.Value)
		}
	})
	if w := h.get(page, &http.Cookie{Name: "arizuko", Value: "of a parent domain"}, c); w.Code != 200 {
		t.Errorf("a foreign cookie of the same name shuts out: %d", w.Code)
	}
}

func TestValid_ExpiredOrLoggedOut_False(t *testing.T) {
	h := open(t, nil)
	var session login.Session
	remember := h.Require(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { session = login.Current(r.Context()) }))
	ask := func(change func(*http.Request)) {
		r := httptest.NewRequest(http.MethodGet, page, nil)
		change(r)
		remember.ServeHTTP(httptest.NewRecorder(), r)
	}
	if h.Valid(t.Context(), login.Session{}) {
		t.Error("the zero session is valid")
	}
	ask(bearer)
	h.now = h.now.Add(1000 * time.Hour)
	if !h.Valid(t.Context(), session) {
		t.Error("the bearer is not valid")
	}
	c := entered(t, h.get(h.newLink()), "/chat/")
	ask(with(c))
	if !h.Valid(t.Context(), session) {
		t.Error("not valid while logged in")
	}
	h.revoked.err = http.ErrServerClosed
	if h.Valid(t.Context(), session) {
		t.Error("valid though revocation is unknown")
	}
	h.revoked.err = nil
	h.now = h.now.Add(31 * 24 * time.Hour)
	if h.Valid(t.Context(), session) {
		t.Error("valid though expired")
	}
	h.now = h.now.Add(-31 * 24 * time.Hour)
	h.do(http.MethodPost, "/logout", nil, with(c))
	if h.Valid(t.Context(), session) {
		t.Error("valid after the logout")
	}
}

func TestRequire_WithoutSession_LoginOr401(t *testing.T) {
	h := open(t, nil)
	accept := func(value string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Accept", value) } }
	authorization := func(value string) func(*http.Request) {
		return func(r *http.Request) { accept("*/*")(r); r.Header.Set("Authorization", value) }
	}
	for name, tc := range map[string]struct {
		method, target string
		change         func(*http.Request)
		want           int
	}{
		"page":          {"GET", "/chat/a/b?c=d&e", nil, 303},
		"page's head":   {"HEAD", "/chat/a", nil, 303},
		"fetch":         {"GET", "/chat/a/messages", accept("application/json"), 401},
		"stream":        {"GET", "/chat/a/events", accept("text/event-stream"), 401},
		"anything":      {"GET", "/", accept("*/*"), 401},
		"nothing":       {"GET", "/", accept(""), 401},
		"post":          {"POST", "/chat/a/messages", nil, 401},
		"bearer":        {"GET", "/", authorization("Bearer " + secret), 200},
		"bearer, lower": {"POST", "/", authorization("bearer " + secret), 200},
		"wrong bearer":  {"GET", "/", authorization("Bearer shared-secre"), 401},
		"empty bearer":  {"GET", "/", authorization("Bearer "), 401},
		"basic":         {"GET", "/", authorization("Basic " + secret), 401},
		"bare":          {"GET", "/", authorization(secret), 401},
	} {
		w := h.do(tc.method, tc.target, nil, tc.change)
		if w.Code != tc.want {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		switch w.Code {
		case 303:
			want := "/login?next=" + url.QueryEscape(tc.target)
			if got := w.Header().Get("Location"); got != want || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", name, w.Header())
			}
		case 401:
			if !strings.Contains(w.Body.String(), `"kind":"unauthorized"`) {
				t.Errorf("%s: %s", name, w.Body)
			}
		case 200:
			if w.Body.String() != `web:operator ""` {
				t.Errorf("%s: %s", name, w.Body)
			}
		}
	}
	// Some proxies add their own credentials.
	c := entered(t, h.get(h.newLink()), "/chat/")
	w := h.do("GET", page, nil, func(r *http.Request) { authorization("Basic eDp5")(r); with(c)(r) })
	if w.Code != 200 {
		t.Errorf("cookie beside basic: %d", w.Code)
	}
}

func TestRequire_Page_ReturnsAfterLogin(t *testing.T) {
	h := open(t, password)
	const target = "/chat/a/b?c=d&e=%2F%26"
	w := h.get(target)
	location, err := url.Parse(w.Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	w = h.do(http.MethodPost, "/login", url.Values{"password": {"open sesame"}, "next": {location.Query().Get("next")}}, nil)
	entered(t, w, target)
}
