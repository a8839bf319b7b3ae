package httpx_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server starts h and returns a client for it; both are closed when the test ends.
func server(t *testing.T, h http.Handler) *httpx.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	client := httpx.NewClient("gated", srv.URL, "")
	t.Cleanup(func() {
		client.HTTP.CloseIdleConnections()
		srv.Close()
	})
	return client
}

// In a bubble, since a connection whose request was sent is not used again if the goroutine that sent it is late.
func TestClientRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := httpx.NewRouter(discard(), nil)
		r.Use(httpx.Verify("gated", func() string { return "s3cret" }), httpx.Bearer("s3cret"))
		r.Post("/echo", func(w http.ResponseWriter, r *http.Request) {
			in, err := httpx.Decode[route](r)
			if err != nil {
				httpx.Error(w, err)
				return
			}
			httpx.JSON(w, http.StatusCreated, in)
		})
		r.Delete("/echo", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		connections, dial := 0, httpx.ServeInBubble(t, r)
		client := httpx.NewClient("gated", "http://memory", "s3cret")
		defer client.HTTP.CloseIdleConnections()
		client.DialWith(func(ctx context.Context, network, address string) (net.Conn, error) {
			connections++
			return dial(ctx, network, address)
		})
		for range 5 {
			var out route
			if err := client.Do(t.Context(), http.MethodPost, "/echo", route{Seq: 3, Target: "main"}, &out); err != nil || out.Seq != 3 {
				t.Fatalf("%+v, %v", out, err)
			}
			if err := client.Do(t.Context(), http.MethodDelete, "/echo", nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if connections != 1 {
			t.Errorf("%d connections for calls in a row", connections)
		}
	})
}

func TestClientErrors(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		kind    apierr.Kind
		message string
	}{
		"fault": {func(w http.ResponseWriter, _ *http.Request) {
			httpx.Error(w, apierr.New(apierr.Conflict, "100 / taken"))
		}, apierr.Conflict, "100 / taken"},
		"not JSON":               {answer(404, "<html>"), apierr.NotFound, "answered 404 <html>"},
		"bad UTF-8":              {answer(400, "\xff"), apierr.BadRequest, "answered 400 ?"},
		"kind and status differ": {answer(503, `{"error":{"kind":"not_found","message":"m"}}`), apierr.Unavailable, "m"},
		"gateway":                {answer(502, ""), apierr.Unavailable, "answered 502"},
		"bug":                    {answer(500, `{"error":{"kind":"internal","message":"internal error"}}`), apierr.Internal, "internal error"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, apierr.Internal, "answered 302"},
		"200 not JSON": {answer(200, "hello"), apierr.Internal, "decode the answer"},
		"200 too long": {answer(200, strings.Repeat(" ", 9<<20)), apierr.Internal, "more than 8388608 bytes"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "{")
		}, apierr.Unavailable, "read the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			client := server(t, tc.handler)
			var out route
			err := client.Do(t.Context(), http.MethodGet, "/", nil, &out)
			if apierr.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.message) {
				t.Errorf("got %s: %v", apierr.KindOf(err), err)
			}
		})
	}
}

func TestClient_ServerDown_ReturnsUnavailable(t *testing.T) {
	const base = "http://127.0.0.1:1" // nothing listens there
	err := httpx.NewClient("gated", base, "s3cret").Do(t.Context(), http.MethodGet, "/v1/x", nil, nil)
	if apierr.KindOf(err) != apierr.Unavailable || !strings.Contains(err.Error(), base+" does not answer") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Error("the secret is in the message")
	}
}

func TestClientTimeout(t *testing.T) {
	release := make(chan struct{})
	client := server(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer close(release)
	client.HTTP.Timeout = 20 * time.Millisecond
	if err := client.Do(t.Context(), http.MethodGet, "/", nil, nil); apierr.KindOf(err) != apierr.Unavailable {
		t.Errorf("timeout: %v", err)
	}
	client.HTTP.Timeout = time.Minute // it would be the error, once it has passed
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client.Do(ctx, http.MethodGet, "/", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestClient_UnencodableBody_ReturnsInternal(t *testing.T) {
	err := httpx.NewClient("gated", "http://127.0.0.1:1", "").Do(t.Context(), http.MethodPost, "/", make(chan int), nil)
	if apierr.KindOf(err) != apierr.Internal {
		t.Errorf("got %v", err)
	}
}

func TestClient_WhatNoDaemonAnswers_IsForeign(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status          int
		body            string
		out             any
		foreign, answer bool
	}{
		"HTML in place of JSON":      {200, "<html>", new(struct{}), true, false},
		"HTML, and nothing expected": {200, "<html>", nil, true, false},
		"nothing, but JSON expected": {200, "", new(struct{}), true, false},
		"too long":                   {200, `"` + strings.Repeat("x", 9<<20) + `"`, new(string), true, false},
		"an error in HTML":           {502, "<html>", nil, true, false},
		"an error of a daemon":       {503, `{"error":{"kind":"unavailable","message":"starting"}}`, nil, false, true},
		"JSON that is not expected":  {200, `{}`, nil, false, false},
		"no content":                 {204, "", nil, false, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(tt.body))
		}))
		err := httpx.NewClient("gated", server.URL, "").Do(t.Context(), http.MethodPost, "/", nil, tt.out)
		if httpx.IsForeign(err) != tt.foreign || httpx.IsAnswer(err) != tt.answer || (err == nil) == (tt.foreign || tt.answer) {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
	}
}
