package login_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
)

const (
	secret  = "shared-secret"
	base    = "http://127.0.0.1:8083"
	page    = "/chat/main"
	visitor = "192.0.2.1:1234" // what httptest requests come from
)

// revoked keeps sessions as the database does.
type revoked struct {
	mu    sync.Mutex
	until map[string]time.Time
	err   error
}

func (r *revoked) Add(_ context.Context, id string, until time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.until[id] = until
	}
	return r.err
}

func (r *revoked) Has(_ context.Context, id string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.until[id]
	return ok, r.err
}

// fixture is a dashboard behind a login.
type fixture struct {
	*login.Login
	t       *testing.T
	handler http.Handler
	revoked *revoked
	now     time.Time
	log     bytes.Buffer
}

func open(t *testing.T, change func(*login.Config)) *fixture {
	t.Helper()
	h := &fixture{t: t, revoked: &revoked{until: map[string]time.Time{}}, now: time.Unix(1_800_000_000, 0)}
	h.restart(change)
	return h
}

// restart makes a new Login; stored sessions and the clock stay.
func (h *fixture) restart(change func(*login.Config)) {
	h.t.Helper()
	cfg := login.Config{
		Secret: secret, Base: base, Revoked: h.revoked, Form: form,
		Now: func() time.Time { return h.now },
		Log: slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&cfg)
	}
	l, err := login.New(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	r := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	l.Mount(r)
	r.Group(func(r chi.Router) {
		r.Use(l.SameOrigin, l.Require)
		r.HandleFunc("/*", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %q", login.Sender(r.Context()), login.Current(r.Context()).ID)
		})
	})
	h.Login, h.handler = l, r
}

func form(w http.ResponseWriter, status int, f login.Form) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "form next=%s password=%v problem=%s", f.Next, f.Password, f.Problem)
}

func password(cfg *login.Config) { cfg.Password = "open sesame" }

// do sends a request as a browser that opens a page does, modified by change.
func (h *fixture) do(method, target string, body url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body.Encode()))
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}

func (h *fixture) get(target string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	h.t.Helper()
	return h.do(http.MethodGet, target, nil, with(cookies...))
}

func (h *fixture) post(secret string, change func(*http.Request)) *httptest.ResponseRecorder {
	h.t.Helper()
	return h.do(http.MethodPost, "/login", url.Values{"password": {secret}, "next": {page}}, change)
}

func with(cookies ...*http.Cookie) func(*http.Request) {
	return func(r *http.Request) {
		for _, c := range cookies {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
}

func from(addr string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = addr }
}

func bearer(r *http.Request) {
	r.Header.Del("Accept")
	r.Header.Set("Authorization", "Bearer "+secret)
}

// path is a link without the host.
func path(t *testing.T, link string) string {
	t.Helper()
	rest, ok := strings.CutPrefix(link, base+"/login?token=")
	if !ok || len(rest) < 43 {
		t.Fatalf("link %q", link)
	}
	return strings.TrimPrefix(link, base)
}

func (h *fixture) newLink() string {
	h.t.Helper()
	return path(h.t, h.Link())
}

// entered checks the answer to a successful login and returns its cookie.
func entered(t *testing.T, w *httptest.ResponseRecorder, next string) *http.Cookie {
	t.Helper()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != next {
		t.Fatalf("%d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("cookies %v", cookies)
	}
	return cookies[0]
}

// refused checks that the answer is the form again.
func refused(t *testing.T, w *httptest.ResponseRecorder, status int, problem string) {
	t.Helper()
	if w.Code != status || !strings.HasPrefix(w.Body.String(), "form ") || !strings.Contains(w.Body.String(), problem) {
		t.Errorf("%d %s, want %d with %q", w.Code, w.Body, status, problem)
	}
	if c := w.Result().Cookies(); len(c) > 0 {
		t.Errorf("and cookies %v", c)
	}
}

func (h *fixture) isIn(c *http.Cookie) bool {
	h.t.Helper()
	w := h.get(page, c)
	switch w.Code {
	case http.StatusOK:
		return true
	case http.StatusSeeOther:
		return false
	}
	h.t.Fatalf("%d %s", w.Code, w.Body)
	return false
}

func TestLink_UsedOnce_LogsIn(t *testing.T) {
	h := open(t, nil)
	link := h.newLink() + "&next=" + page
	for range 3 {
		if w := h.do(http.MethodHead, link, nil, nil); w.Code != 200 || len(w.Result().Cookies()) > 0 {
			t.Fatalf("HEAD: %d %v", w.Code, w.Header())
		}
	}
	w := h.get(link)
	c := entered(t, w, page)
	if c.Name != "arizuko" || !c.HttpOnly || c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge != 30*24*60*60 || c.Domain != "" {
		t.Errorf("cookie %v", c)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q", got)
	}
	if w := h.get(page, c); w.Code != 200 || !strings.HasPrefix(w.Body.String(), `web:operator "`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	refused(t, h.get(link), 403, "used before")
	if w := h.get(link, c); w.Code != 303 || w.Header().Get("Location") != page || len(w.Result().Cookies()) > 0 {
		t.Errorf("used, but logged in: %d %v", w.Code, w.Header())
	}
	if w := h.get("/login?next=/status", c); w.Code != 303 || w.Header().Get("Location") != "/status" {
		t.Errorf("logged in: %d %v", w.Code, w.Header())
	}
	if w := h.get("/login?next=/status"); w.Code != 200 || w.Body.String() != "form next=/status password=false problem=" {
		t.Errorf("no token: %d %s", w.Code, w.Body)
	}
}

func TestLink_LoggedInBrowser_UsesIt(t *testing.T) {
	h := open(t, nil)
	c := entered(t, h.get(h.newLink()), "/chat/")
	link := h.newLink()
	h.get(link, c)
	refused(t, h.get(link), 403, "used before")
}

func TestLink_ManyAtOnce_OneLogin(t *testing.T) {
	h := open(t, nil)
	link := h.newLink()
	codes := make(chan int)
	for range 4 {
		go func() { codes <- h.get(link).Code }()
	}
	in := 0
	for range 4 {
		if <-codes == http.StatusSeeOther {
			in++
		}
	}
	if in != 1 {
		t.Errorf("%d got in", in)
	}
}

func TestLink_Expires(t *testing.T) {
	h := open(t, nil)
	first := h.newLink()
	h.now = h.now.Add(time.Hour - time.Second)
	entered(t, h.get(first), "/chat/")
	second := h.newLink()
	h.now = h.now.Add(time.Hour)
	refused(t, h.get(second), 403, "expired")
	third := h.newLink()
	h.restart(nil)
	refused(t, h.get(third), 403, "expired")
}

func TestLink_Unused_StaysSame(t *testing.T) {
	h := open(t, nil)
	ask := func() string {
		w := h.do(http.MethodPost, "/v1/login-link", nil, bearer)
		var answer struct{ URL string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return answer.URL
	}
	link := h.Link()
	if got := ask(); got != link || h.Link() != link {
		t.Errorf("%q, then %q", link, got)
	}
	entered(t, h.get(path(t, link)), "/chat/")
	again := ask()
	if again == link {
		t.Error("a used link again")
	}
	h.now = h.now.Add(time.Hour)
	if late := ask(); late == again {
		t.Error("an expired link again")
	} else {
		entered(t, h.get(path(t, late)), "/chat/")
	}
	for name, change := range map[string]func(*http.Request){
		"nothing": nil,
		"cookie":  with(entered(t, h.get(h.newLink()), "/chat/")),
		"wrong":   func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") },
	} {
		if w := h.do(http.MethodPost, "/v1/login-link", nil, change); w.Code != 401 || strings.Contains(w.Body.String(), "token=") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestPassword_OnlyTheExactOne_Accepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, password)
		if w := h.get("/login?next=" + page); w.Code != 200 || w.Body.String() != "form next="+page+" password=true problem=" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		refused(t, h.post("open sesam", nil), 403, "not the password")
		refused(t, h.post("", nil), 403, "next=/chat/main password=true")
		if c := entered(t, h.post("open sesame", nil), page); !h.isIn(c) {
			t.Error("the right password does not let in")
		}
		// Only the body counts: query strings end up in logs.
		w := h.do(http.MethodPost, "/login?password=open+sesame", url.Values{"next": {page}}, nil)
		refused(t, w, 403, "not the password")
	})
}

func TestLoginLink_Password_Conflict(t *testing.T) {
	h := open(t, nil)
	link := h.newLink()
	h.restart(password)
	if got := h.Link(); got != base+"/login" {
		t.Errorf("it is %q", got)
	}
	if w := h.do(http.MethodPost, "/v1/login-link", nil, bearer); w.Code != 409 || !strings.Contains(w.Body.String(), "DASH_PASSWORD is set") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, target := range []string{link, "/login?token="} {
		refused(t, h.get(target), 200, "password=true problem=")
	}
}

func TestPassword_NoneSet_Refused(t *testing.T) {
	h := open(t, nil)
	for range 20 { // and it is not a failed try: there is nothing to guess
		refused(t, h.post("", nil), 403, "There is no password")
	}
	entered(t, h.get(h.newLink()), "/chat/")
}

func TestSubmit_InvalidForm_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, password)
		long := strings.Repeat("x", 20<<10)
		refused(t, h.post(long, nil), 400, "could not be read")
		refused(t, h.do(http.MethodPost, "/login", url.Values{}, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("password=%zz"))
		}), 400, "could not be read")
		refused(t, h.post(strings.Repeat("x", 10<<10), nil), 403, "not the password")
		refused(t, h.do(http.MethodPost, "/login", nil, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Body = io.NopCloser(strings.NewReader(`{"password":"open sesame"}`))
		}), 403, "not the password")
	})
}

func TestCookie_HTTPS_Secure(t *testing.T) {
	overTLS := func(r *http.Request) { r.TLS = &tls.ConnectionState{} }
	pretended := func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }
	https := func(cfg *login.Config) { password(cfg); cfg.Base = config.URL("https://chat.example") }
	for name, tc := range map[string]struct {
		cfg    func(*login.Config)
		change func(*http.Request)
		want   bool
	}{
		"http": {password, nil, false}, "TLS": {password, overTLS, true}, "https base": {https, nil, true}, "a header": {password, pretended, false},
	} {
		h := open(t, tc.cfg)
		if c := entered(t, h.post("open sesame", tc.change), page); c.Secure != tc.want {
			t.Errorf("%s: %v", name, c)
		}
	}
}

func TestPost_OtherSite_Refused(t *testing.T) {
	h := open(t, password)
	c := entered(t, h.post("open sesame", nil), page)
	site := func(headers ...string) func(*http.Request) {
		return func(r *http.Request) {
			r.Host = "127.0.0.1:8083"
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*http.Request)
		passes bool
	}{
		"other origin":       {site("Origin", "http://evil.example"), false},
		"other port":         {site("Origin", "http://127.0.0.1:8084"), false},
		"null origin":        {site("Origin", "null"), false},
		"cross-site":         {site("Sec-Fetch-Site", "cross-site"), false},
		"same site":          {site("Sec-Fetch-Site", "same-site"), false},
		"own origin":         {site("Origin", base), true},
		"own, fetch":         {site("Sec-Fetch-Site", "same-origin"), true},
		"program":            {site(), true},
		"bearer":             {site("Authorization", "Bearer "+secret), true},
		"bearer with origin": {site("Authorization", "Bearer "+secret, "Origin", "http://evil.example"), false},
		"behind a proxy":     {func(r *http.Request) { site("Origin", base)(r); r.Host = "dashd:8083" }, true},
	} {
		for _, target := range []string{"/login", "/chat/main/messages", "/logout"} {
			w := h.do(http.MethodPost, target, url.Values{"password": {"open sesame"}}, tc.change)
			var answer struct{ Error struct{ Kind apierr.Kind } }
			_ = json.Unmarshal(w.Body.Bytes(), &answer)
			denied := w.Code == 403 && answer.Error.Kind == apierr.Forbidden
			if denied == tc.passes {
				t.Errorf("%s, POST %s: %d %s", name, target, w.Code, w.Body)
			}
			h.revoked.until = map[string]time.Time{}
		}
		if w := h.do(http.MethodGet, page, nil, tc.change); w.Code != 200 {
			t.Errorf("%s, GET: %d", name, w.Code)
		}
	}
}

func TestLogout_ClearsCookie(t *testing.T) {
	h := open(t, nil)
	c, other := entered(t, h.get(h.newLink()), "/chat/"), entered(t, h.get(h.newLink()), "/chat/")
	w := h.do(http.MethodPost, "/logout", nil, with(c))
	if gone := entered(t, w, "/login"); gone.Name != "arizuko" || gone.Value != "" || gone.MaxAge >= 0 || gone.Path != "/" {
		t.Errorf("cookie %v", gone)
	}
	h.restart(nil)
	if h.isIn(c) || !h.isIn(other) {
		t.Error("the logout ended the wrong session, or none")
	}
	for _, until := range h.revoked.until {
		if want := h.now.Add(30 * 24 * time.Hour); !until.Equal(want) {
			t.Errorf("revoked until %v, want %v", until, want)
		}
	}
	if w := h.do(http.MethodPost, "/logout", nil, with(c)); w.Code != 303 || len(h.revoked.until) != 1 {
		t.Errorf("again: %d", w.Code)
	}
	if w := h.do(http.MethodPost, "/logout", nil, bearer); w.Code != 303 || len(h.revoked.until) != 1 {
		t.Errorf("with the secret: %d", w.Code)
	}
	if h.get("/logout", other); !h.isIn(other) {
		t.Error("a mere link logs out")
	}
}

func TestRequire_RevokedUnreadable_Unavailable(t *testing.T) {
	h := open(t, nil)
	c := entered(t, h.get(h.newLink()), "/chat/")
	h.revoked.err = errors.New("disk full of secrets")
	for _, w := range []*httptest.ResponseRecorder{h.get(page, c), h.get("/login", c), h.do(http.MethodPost, "/logout", nil, with(c))} {
		if w.Code != 503 || len(w.Result().Cookies()) > 0 {
			t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
		}
	}
	if w := h.do(http.MethodGet, page, nil, bearer); w.Code != 200 {
		t.Errorf("bearer: %d", w.Code)
	}
}

func TestLog_Secrets_Absent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, nil)
		link := h.newLink()
		h.get(link + "x")
		c := entered(t, h.get(link), "/chat/")
		h.restart(password)
		h.post("open sesame?", nil)
		entered(t, h.post("open sesame", nil), page)
		log := h.log.String()
		for _, bad := range []string{"sesame", strings.TrimPrefix(link, "/login?token="), c.Value, secret} {
			if strings.Contains(log, bad) {
				t.Errorf("%q in\n%s", bad, log)
			}
		}
		if strings.Count(log, "login failed") != 2 || strings.Count(log, visitor) != 4 {
			t.Errorf("log:\n%s", log)
		}
	})
}

func TestNew_InvalidConfig_Refused(t *testing.T) {
	for name, cfg := range map[string]login.Config{
		"no secret": {Base: base}, "no URL": {Secret: secret, Base: "127.0.0.1:8083"}, "no host": {Secret: secret, Base: "http://"},
	} {
		if _, err := login.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
