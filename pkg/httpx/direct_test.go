package httpx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"arizuko/pkg/apierr"
)

// directTo returns a direct client of a handler and counts the connections.
func directTo(t *testing.T, handler http.HandlerFunc) (c *Client, server *httptest.Server, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	server = httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	c = NewClient("gated", server.URL, "").Direct()
	t.Cleanup(server.Close)
	t.Cleanup(c.HTTP.CloseIdleConnections)
	return c, server, connections
}

type echoed struct {
	Text string
}

func echo(w http.ResponseWriter, r *http.Request) {
	in, err := Decode[echoed](r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	JSON(w, http.StatusOK, in)
}

func TestDirect_Requests_ShareAConnection(t *testing.T) {
	c, _, connections := directTo(t, echo)
	for i := range 20 {
		var got echoed
		text := strings.Repeat("x", i*10_000)
		if err := c.Do(t.Context(), http.MethodPost, "/", echoed{Text: text}, &got); err != nil || got.Text != text {
			t.Fatalf("request %d: %d bytes, %v", i, len(got.Text), err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestDirect_ConcurrentRequests_AreAnswered(t *testing.T) {
	c, _, connections := directTo(t, echo)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			for k := range 20 {
				var got echoed
				text := fmt.Sprint(i, k)
				if err := c.Do(t.Context(), http.MethodPost, "/", echoed{Text: text}, &got); err != nil || got.Text != text {
					t.Errorf("%q: %+v, %v", text, got, err)
				}
			}
		})
	}
	all.Wait()
	if n := connections.Load(); n < 1 || n > 200 {
		t.Errorf("%d connections", n)
	}
}

func TestDirect_ConnectionClosedMeanwhile_IsOpenedAgain(t *testing.T) {
	c, server, connections := directTo(t, echo)
	for i := range 3 {
		var got echoed
		if err := c.Do(t.Context(), http.MethodPost, "/", echoed{Text: "x"}, &got); err != nil || got.Text != "x" {
			t.Fatalf("request %d: %+v, %v", i, got, err)
		}
		server.CloseClientConnections()
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
	server.Close()
	if err := c.Do(t.Context(), http.MethodPost, "/", echoed{}, nil); apierr.KindOf(err) != apierr.Unavailable {
		t.Errorf("without a server: %v", err)
	}
}

func TestDirect_NewConnectionEnds_Fails(t *testing.T) {
	c, _, connections := directTo(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if err := c.Do(t.Context(), http.MethodGet, "/", nil, nil); apierr.KindOf(err) != apierr.Unavailable {
		t.Errorf("error %v", err)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestDirect_ContextEnds_FailsAtOnce(t *testing.T) {
	hang := make(chan struct{})
	c, _, _ := directTo(t, func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	late, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Do(late, http.MethodGet, "/", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	cancelled, stop := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, stop)
	if err := c.Do(cancelled, http.MethodGet, "/", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestDirect_ErrorsAndLargeAnswers(t *testing.T) {
	c, _, _ := directTo(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(make([]byte, maxAnswer+2))
		case "/moved":
			http.Redirect(w, r, "/large", http.StatusFound)
		default:
			JSON(w, http.StatusNotFound, errorBody{})
		}
	})
	for path, want := range map[string]apierr.Kind{"/large": apierr.Internal, "/none": apierr.NotFound} {
		if err := c.Do(t.Context(), http.MethodGet, path, nil, nil); apierr.KindOf(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := c.Do(t.Context(), http.MethodGet, "/moved", nil, nil); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("redirect: %v", err)
	}
	if _, ok := NewClient("gated", "https://127.0.0.1:1", "").Direct().HTTP.Transport.(*direct); ok {
		t.Error("the client of an https URL is direct")
	}
}
