package httpx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestBearer(t *testing.T) {
	guarded := func(secret string) http.Handler {
		return httpx.Bearer(secret)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	}
	for _, tc := range []struct {
		secret, header string
		want           int
	}{
		{"s3cret", "Bearer s3cret", 204},
		{"s3cret", "bearer s3cret", 204},
		{"s3cret", "", 401},
		{"s3cret", "s3cret", 401},
		{"s3cret", "Bearer", 401},
		{"s3cret", "Bearer s3cre", 401},
		{"s3cret", "Bearer s3crets", 401},
		{"s3cret", "Bearer  s3cret", 401},
		{"s3cret", "Basic s3cret", 401},
		{"", "Bearer ", 401},
		{"", "", 401},
	} {
		w := get(guarded(tc.secret), "/", "Authorization", tc.header)
		if w.Code != tc.want {
			t.Errorf("secret %q, header %q: %d, want %d", tc.secret, tc.header, w.Code, tc.want)
		}
		if tc.want == 401 && !strings.Contains(w.Body.String(), `"kind":"unauthorized"`) {
			t.Errorf("body %s", w.Body)
		}
	}
}

func TestRouterAnswersInJSON(t *testing.T) {
	r := httpx.NewRouter(discard(), nil)
	r.Post("/only-post", func(http.ResponseWriter, *http.Request) {})
	if w := get(r, "/nowhere"); w.Code != 404 || !strings.Contains(w.Body.String(), `"kind":"not_found"`) {
		t.Errorf("unknown path: %d %s", w.Code, w.Body)
	}
	if w := get(r, "/only-post"); w.Code != 400 || !strings.Contains(w.Body.String(), "does not take GET") {
		t.Errorf("wrong method: %d %s", w.Code, w.Body)
	}
}

func TestRouterLimitsBodies(t *testing.T) {
	r := httpx.NewRouter(discard(), nil)
	r.Post("/", func(w http.ResponseWriter, r *http.Request) {
		_, err := httpx.Decode[string](r)
		httpx.Error(w, err)
	})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`"`+strings.Repeat("x", httpx.MaxBody)+`"`)))
	if w.Code != 400 || !strings.Contains(w.Body.String(), "larger than 1048576 bytes") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestRouter_InternalError_IsLoggedOnly(t *testing.T) {
	var out bytes.Buffer
	r := httpx.NewRouter(slog.New(slog.NewTextHandler(&out, nil)), nil)
	r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic("secret plan") })
	r.Get("/bug", func(w http.ResponseWriter, _ *http.Request) { httpx.Error(w, errors.New("secret plan")) })
	r.With(wrapped).Get("/wrapped", func(w http.ResponseWriter, _ *http.Request) { httpx.Error(w, errors.New("secret plan")) })
	r.Get("/mine", func(w http.ResponseWriter, _ *http.Request) { httpx.Error(w, apierr.New(apierr.Conflict, "taken")) })
	for path, logged := range map[string]bool{"/panic": true, "/bug": true, "/wrapped": true, "/mine": false} {
		out.Reset()
		w := get(r, path)
		if strings.Contains(w.Body.String(), "secret plan") || logged != (w.Code == 500) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if strings.Contains(out.String(), "secret plan") != logged || strings.Contains(out.String(), "stack=") != (path == "/panic") {
			t.Errorf("%s: logged %q", path, out.String())
		}
	}
}

func TestRouter_ClientGone_IsNotLogged(t *testing.T) {
	var out bytes.Buffer
	r := httpx.NewRouter(slog.New(slog.NewTextHandler(&out, nil)), nil)
	r.Get("/", func(w http.ResponseWriter, r *http.Request) { httpx.Error(w, fmt.Errorf("read: %w", context.Canceled)) })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for ctx, logged := range map[context.Context]bool{gone: false, t.Context(): true} {
		out.Reset()
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		if strings.Contains(out.String(), "request failed") != logged {
			t.Errorf("want logged %t: %q", logged, out.String())
		}
	}
}

func wrapped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(struct {
			http.ResponseWriter
			unwrapper
		}{w, unwrapper{w}}, r)
	})
}

type unwrapper struct{ w http.ResponseWriter }

func (u unwrapper) Unwrap() http.ResponseWriter { return u.w }

func TestRouter_PanicAfterHeader_CutsAnswerOff(t *testing.T) {
	r := httpx.NewRouter(discard(), nil)
	r.Get("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first half")
		_ = http.NewResponseController(w).Flush()
		panic("boom")
	})
	srv := httptest.NewServer(r)
	defer srv.Close()
	res, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("%q looks complete", body)
	}
}

func TestHealth(t *testing.T) {
	reg := prometheus.NewRegistry()
	r := httpx.NewRouter(discard(), reg)
	_ = httpx.NewRouter(discard(), reg) // a second listener of the same process
	var waiting, notes []string
	httpx.Health(r, reg, func() string { return "s3cret" }, func() ([]string, []string) { return waiting, notes })
	r.Get("/things/{id}", func(http.ResponseWriter, *http.Request) {})

	if w := get(r, "/healthz"); w.Code != 200 || w.Body.String() != "ok\n" {
		t.Errorf("healthz: %d %q", w.Code, w.Body)
	}
	if w := get(r, "/readyz"); w.Code != 200 {
		t.Errorf("readyz: %d %q", w.Code, w.Body)
	}
	notes = []string{"route 7 is bad"}
	readyz := func(authorization string, code int, body string) {
		t.Helper()
		if w := get(r, "/readyz", "Authorization", authorization); w.Code != code || w.Body.String() != body {
			t.Errorf("readyz: %d %q, want %q", w.Code, w.Body, body)
		}
	}
	readyz("Bearer s3cret", 200, "ok\nroute 7 is bad\n")
	readyz("", 200, "ok\n")
	readyz("Bearer guess", 200, "ok\n")
	waiting = []string{"schema 3 of 4", "routd"}
	readyz("Bearer s3cret", 503, "schema 3 of 4\nroutd\nroute 7 is bad\n")
	readyz("", 503, "schema 3 of 4\nroutd\n")
	get(r, "/things/7")
	r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", "/healthz", nil))
	metrics := get(r, "/metrics").Body.String()
	for _, want := range []string{
		`arizuko_http_request_seconds_count{method="GET",route="/things/{id}",status="200"} 1`,
		`arizuko_http_request_seconds_count{method="GET",route="/readyz",status="503"} 2`,
		`method="other"`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		head := httptest.NewRecorder()
		if r.ServeHTTP(head, httptest.NewRequest(http.MethodHead, path, nil)); head.Code != get(r, path).Code {
			t.Errorf("HEAD %s: %d", path, head.Code)
		}
	}
	if strings.Contains(metrics, "BREW") {
		t.Error("a client can invent label values")
	}
}
