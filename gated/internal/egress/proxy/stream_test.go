package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket" //nolint:depguard // a server and client of WebSockets, for the proxy between them

	"arizuko/pkg/egress"
)

// throughEach runs a test by a tunnel that is passed, one that is opened, and one where a secret is replaced.
func throughEach(t *testing.T, upstream http.HandlerFunc, test func(t *testing.T, w *world, token string)) {
	t.Helper()
	for name, rule := range map[string]egress.Rule{
		"pass":   {Host: "api.test", Action: egress.Pass},
		"opened": {Host: "api.test", Path: "/", Action: egress.Pass},
		"inject": {Host: "api.test", Action: egress.Inject, Secret: "key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upstream, rule)
			token := w.setSecret("key", value)
			if name != "inject" {
				token = ""
			}
			test(t, w, token)
		})
	}
}

// TestStreams: each piece arrives before the next one is sent, in both directions.
func TestStreams(t *testing.T) {
	t.Parallel()
	upstream := func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodGet { // events, at the pace at which another request asks for them
			for i := range 3 {
				fmt.Fprintf(w, "data: %d %s\n\n", i, r.Header.Get("X-Key"))
				_ = rc.Flush()
			}
			<-r.Context().Done()
			return
		}
		_ = rc.EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_ = rc.Flush()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintf(w, "got %s\n", lines.Text())
			_ = rc.Flush()
		}
	}
	throughEach(t, upstream, func(t *testing.T, w *world, token string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.test/", nil)
		r.Header.Set("X-Key", token)
		res, err := w.client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		events := bufio.NewScanner(res.Body)
		for i := range 3 {
			if !events.Scan() || events.Text() != fmt.Sprintf("data: %d %s", i, token) || !events.Scan() {
				t.Fatalf("event %d: %q, %v", i, events.Text(), events.Err())
			}
		}
		cancel()
		if got := <-w.ended; got.State == egress.Refused || got.BytesIn == 0 {
			t.Errorf("receipt %+v", got)
		}

		body, upload := io.Pipe()
		r, _ = http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.test/", body)
		r.Header.Set("X-Key", token)
		go fmt.Fprintln(upload, "line 0")
		res, err = w.client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answers := bufio.NewScanner(res.Body)
		for i := range 3 {
			if !answers.Scan() || answers.Text() != fmt.Sprintf("got line %d", i) {
				t.Fatalf("answer %d: %q, %v", i, answers.Text(), answers.Err())
			}
			if i < 2 {
				fmt.Fprintf(upload, "line %d\n", i+1)
			}
		}
		upload.Close()
		if answers.Scan() {
			t.Errorf("more: %q", answers.Text())
		}
	})
}

func TestLargeBodies(t *testing.T) {
	t.Parallel()
	const size = 20 << 20
	upstream := func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
		_, _ = io.CopyN(w, strings.NewReader(strings.Repeat(value[:9], size/9+1)), size)
	}
	throughEach(t, upstream, func(t *testing.T, w *world, token string) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://api.test/", strings.NewReader(strings.Repeat("x", size)))
		r.Header.Set("X-Key", token)
		r.Header.Set("Expect", "100-continue")
		if status, body := do(w.client(), r); status != 200 || len(body) != len(fmt.Sprint(size))+size {
			t.Errorf("%d, %d bytes", status, len(body))
		}
	})
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	upstream := func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, message, err := c.Read(r.Context())
			if err != nil {
				return
			}
			_ = c.Write(r.Context(), kind, []byte(string(message)+r.Header.Get("X-Key")))
		}
	}
	throughEach(t, upstream, func(t *testing.T, w *world, token string) {
		for _, url := range []string{"wss://api.test/", "ws://api.test/"} {
			header := http.Header{"X-Key": {token}}
			want := strings.Repeat("*", len(value))
			if token == "" {
				want = ""
			}
			if strings.HasPrefix(url, "ws:") { // no secret goes there, and nothing passes unread at port 80 without TLS
				header, want = nil, ""
			}
			c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPClient: w.client(), HTTPHeader: header, CompressionMode: websocket.CompressionContextTakeover})
			if err != nil {
				t.Fatalf("%s: %v", url, err)
			}
			for i := range 3 {
				text := fmt.Sprint(strings.Repeat("m", 2000), i)
				if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
					t.Fatal(err)
				}
				if _, got, err := c.Read(t.Context()); err != nil || string(got) != text+want {
					t.Fatalf("%s: %q, %v", url, got, err)
				}
			}
			c.Close(websocket.StatusNormalClosure, "")
			if got := <-w.ended; got.State == egress.Refused || got.BytesIn == 0 || got.BytesOut == 0 {
				t.Errorf("%s: receipt %+v", url, got)
			}
		}
	})
}

// TestClose_CutsWebSockets: the proxy does not wait for agents that leave theirs open.
func TestClose_CutsWebSockets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if c, err := websocket.Accept(w, r, nil); err == nil {
			_, _, _ = c.Read(r.Context())
		}
	}, egress.Rule{Host: "api.test", Path: "/", Action: egress.Pass})
	c, _, err := websocket.Dial(t.Context(), "wss://api.test/", &websocket.DialOptions{HTTPClient: w.client()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = w.Close(ctx)
	if got := <-w.ended; got.State != egress.Sent {
		t.Errorf("receipt %+v", got)
	}
}

// TestReceipts_EffectsAreStoredBefore: when a server sees a request that may change something, its receipt is there.
func TestReceipts_EffectsAreStoredBefore(t *testing.T) {
	t.Parallel()
	var w *world
	var seen []string
	w = newWorld(t, func(http.ResponseWriter, *http.Request) {
		got := w.last()
		seen = append(seen, fmt.Sprint(got.Method, " ", got.State, " ", got.EndedAt != 0))
	}, egress.Rule{Host: "api.test", Path: "/", Action: egress.Pass}, egress.Rule{Host: "open.test", Action: egress.Pass},
		egress.Rule{Host: "failing.invalid", Path: "/", Action: egress.Pass})
	for _, request := range []string{"POST https://api.test/", "DELETE http://api.test/", "GET https://open.test/", "PUT https://failing.invalid/"} {
		method, url, _ := strings.Cut(request, " ")
		r, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
		_, _ = do(w.client(), r)
	}
	if got, want := strings.Join(seen, "|"), "POST sending false|DELETE sending false|CONNECT sending false"; got != want {
		t.Errorf("the server saw %s, want %s", got, want)
	}
	if got := w.last(); got.State != egress.Failed || !strings.Contains(got.Reason, "failing.invalid has no address") {
		t.Errorf("receipt %+v", got)
	}
}

// TestPanic: a bug ends one request, with a receipt.
func TestPanic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {}, egress.Rule{Host: "api.test", Path: "/", Action: egress.Pass})
	w.ask = func(context.Context, *egress.Receipt, string, []byte) (bool, string, error) { panic("bug") }
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://asked.test/", nil)
	if status, _ := do(w.client(), r); status != 0 {
		t.Errorf("status %d", status)
	}
	if got := w.last(); got.State != egress.Failed || got.EndedAt == 0 {
		t.Errorf("receipt %+v", got)
	}
	r, _ = http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.test/", nil)
	if status, body := do(w.client(), r); status != 200 {
		t.Errorf("the next request: %d %s", status, body)
	}
}

// TestRedirect: to a private address is another request, which is refused.
func TestRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:9/", http.StatusFound)
	}, egress.Rule{Host: "api.test", Action: egress.Pass}, egress.Rule{Host: "127.0.0.1:9", Action: egress.Pass})
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.test/", nil)
	transport := w.client().Transport.(*http.Transport)
	if status, body := do(&http.Client{Transport: transport}, r); status != 403 || !strings.Contains(body, "reserved address") {
		t.Errorf("%d %s", status, body)
	}
}
