package adapter

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/msg"
)

// listen is the address of a server that does with each connection what serve says.
func listen(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			serve(c)
		}
	}()
	return l.Addr().String()
}

func callURL(ctx context.Context, t *testing.T, c *http.Client, to string) error {
	t.Helper()
	t.Cleanup(c.CloseIdleConnections)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	return err
}

func TestTransport_FailsWithoutConnection_IsUnsent(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	proxied := NewCallClient()
	proxied.Transport.(*transport).base.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(refusing.URL) }
	for name, tt := range map[string]struct {
		client *http.Client
		url    string
	}{
		"refused":          {NewCallClient(), "http://127.0.0.1:1"},
		"refused by proxy": {proxied, "https://host.invalid"},
	} {
		if err := callURL(t.Context(), t, tt.client, tt.url); !errors.Is(err, ErrUnsent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTransport_FailsAfterConnection_MayHaveArrived(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	for name, tt := range map[string]struct {
		ctx    context.Context //nolint:containedctx // of one case
		client *http.Client
		serve  func(net.Conn)
	}{
		"reset":    {t.Context(), NewCallClient(), func(c net.Conn) { _, _ = c.Read(make([]byte, 1)); c.Close() }},
		"canceled": {canceled, NewCallClient(), func(c net.Conn) { _, _ = c.Read(make([]byte, 1)); cancel() }},
	} {
		err := callURL(tt.ctx, t, tt.client, "http://"+listen(t, tt.serve))
		if err == nil || errors.Is(err, ErrUnsent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cancel()
}

// The first request of a redirect has arrived, whatever becomes of the second.
func TestTransport_FailsAfterRedirect_MayHaveArrived(t *testing.T) {
	first := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1", http.StatusFound))
	t.Cleanup(first.Close)
	if err := callURL(t.Context(), t, NewCallClient(), first.URL); err == nil || errors.Is(err, ErrUnsent) {
		t.Errorf("%v", err)
	}
}

func TestTransport_CallsDeadline_ReplacesTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }()
			time.AfterFunc(5*time.Second, func() { _, _ = io.WriteString(server, "HTTP/1.1 204 No Content\r\n\r\n") })
			return client, nil
		}
		c := Network{Dial: dial}.client(time.Minute, time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := callURL(ctx, t, c, "http://host.test"); err != nil {
			t.Error(err)
		}
		c.CloseIdleConnections()
		if err := callURL(t.Context(), t, c, "http://host.test"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnsent) {
			t.Errorf("without a deadline: %v", err)
		}
	})
}

func TestDownload_Status_DecidesOverRetry(t *testing.T) {
	for status, want := range map[int]msg.ErrorClass{
		403: msg.Permanent, 404: msg.Permanent, 302: msg.Permanent, 408: msg.Transient, 429: msg.Transient, 502: msg.Transient,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(s.Close)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := NewCallClient()
		t.Cleanup(c.CloseIdleConnections)
		var f *Failure
		if err := Download(c, req, io.Discard, nil); !errors.As(err, &f) || f.Class != want {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestDownload_Redirect_IsFollowedOnItsHostAlone(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/own":
			http.Redirect(w, r, "/file", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/other", "/twice":
			http.Redirect(w, r, map[string]string{"/other": other.URL, "/twice": "/other"}[r.URL.Path], http.StatusTemporaryRedirect)
		default:
			_, _ = io.WriteString(w, "meow")
		}
	}))
	t.Cleanup(s.Close)
	c := NewCallClient()
	t.Cleanup(c.CloseIdleConnections)
	for path, want := range map[string]string{"/own": "meow", "/loop": "", "/other": "", "/twice": ""} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		var f *Failure
		if err := Download(c, req, &got, nil); got.String() != want || (err == nil) != (want != "") || err != nil && (!errors.As(err, &f) || f.Class != msg.Permanent) {
			t.Errorf("%s: %q, %v", path, got.String(), err)
		}
	}
	if asked {
		t.Error("the other host was asked")
	}
}
