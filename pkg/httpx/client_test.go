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

func TestClient_Answers_HaveAKindAndSayWhoMadeThem(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const errorPage, daemonsError = `<html>`, `{"error":{"kind":"unavailable","message":"starting"}}`
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		out     any
		kind    apierr.Kind // "" for no error
		message string
		says    string // who has said it: a daemon, or another program
	}{
		"fault": {func(w http.ResponseWriter, _ *http.Request) {
			httpx.Error(w, apierr.New(apierr.Conflict, "100 / taken"))
		}, new(route), apierr.Conflict, "100 / taken", "daemon"},
		"an error, nothing expected": {answer(503, daemonsError), nil, apierr.Unavailable, "starting", "daemon"},
		"not JSON":                   {answer(404, errorPage), new(route), apierr.NotFound, "answered 404 <html>", "foreign"},
		"bad UTF-8":                  {answer(400, "\xff"), new(route), apierr.BadRequest, "answered 400 ?", "foreign"},
		"kind and status differ":     {answer(503, `{"error":{"kind":"not_found","message":"m"}}`), new(route), apierr.Unavailable, "m", "daemon"},
		"gateway":                    {answer(502, ""), new(route), apierr.Unavailable, "answered 502", "foreign"},
		"bug":                        {answer(500, `{"error":{"kind":"internal","message":"internal error"}}`), new(route), apierr.Internal, "internal error", "daemon"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, new(route), apierr.Internal, "answered 302", "foreign"},
		"200 not JSON":                   {answer(200, "hello"), new(route), apierr.Internal, "decode the answer", "foreign"},
		"200 not JSON, nothing expected": {answer(200, errorPage), nil, apierr.Internal, "what is no JSON", "foreign"},
		"200 empty, JSON expected":       {answer(200, ""), new(route), apierr.Internal, "decode the answer", "foreign"},
		"200 JSON, nothing expected":     {answer(200, `{}`), nil, "", "", ""},
		"204":                            {answer(204, ""), nil, "", "", ""},
		"200 too long":                   {answer(200, strings.Repeat(" ", 9<<20)), new(route), apierr.Internal, "more than 8388608 bytes", "foreign"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "{")
		}, new(route), apierr.Unavailable, "read the answer", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := server(t, tc.handler).Do(t.Context(), http.MethodGet, "/", nil, tc.out)
			if apierr.KindOf(err) != tc.kind || err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Errorf("got %s: %v", apierr.KindOf(err), err)
			}
			if httpx.IsForeign(err) != (tc.says == "foreign") || httpx.IsAnswer(err) != (tc.says == "daemon") {
				t.Errorf("of another program: %t, of a daemon: %t, want %q", httpx.IsForeign(err), httpx.IsAnswer(err), tc.says)
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
