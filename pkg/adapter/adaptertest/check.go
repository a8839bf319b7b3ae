package adaptertest

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// CheckServers runs the check subcommand of an adapter, with run, against servers that are not the platform's API, or
// are out of order, and one that never answers. variable is that of the API's URL. run returns the exit code.
func CheckServers(t *testing.T, variable string, run func(ctx context.Context, api string, out io.Writer) (code int)) {
	t.Helper()
	silence := make(chan struct{})
	defer close(silence)
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"silent":       {func(http.ResponseWriter, *http.Request) { <-silence }, "does not answer: nothing came for"},
		"page":         {answering(200, "<html>"), "with a web page: this is not "},
		"page 404":     {answering(404, "<html>"), "look at " + variable},
		"empty":        {answering(200, ""), "with nothing: this is not "},
		"empty object": {answering(200, "{}"), "with {}: this is not "},
		"ok":           {answering(200, `{"ok":true}`), "this is not "},
		"not ok":       {answering(200, `{"ok":false}`), "this is not "},
		"other types":  {answering(200, `{"ok":true,"id":7,"user_id":7,"result":{"id":"7"}}`), "this is not "},
		"redirect":     {answering(302, ""), "with a redirect to "},
		"message":      {answering(404, `{"message":"Not Found"}`), "look at " + variable},
		"other JSON":   {answering(404, `{"detail":"Not Found"}`), "look at " + variable},
		"other text":   {answering(404, "404 page not found"), "with 404 page not found: this is not "},
		"502": {answering(502, "<html>"),
			"answers 502 Bad Gateway: it, or the server behind it, is out of order"},
		"503": {answering(503, ""), "answers 503 Service Unavailable"},
		"429": {answering(429, "<html>"), "check again in 17s"},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(tt.handler)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if name == "silent" {
				ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer api.CloseClientConnections()
			} else {
				defer api.Close()
			}
			defer cancel()
			var out bytes.Buffer
			code := run(ctx, api.URL, &out)
			if text := out.String(); code != 1 || !strings.Contains(text, tt.want) ||
				strings.Contains(text, "connects as") || strings.Contains(text, ": ok") {
				t.Errorf("exit %d, want 1, and %q:\n%s", code, tt.want, text)
			}
		})
	}
}

// CheckGateways runs the check subcommand of an adapter, with run, against an API that is well, and that gives an
// address for websockets where there is no websocket of the platform. answers are the answers of the API for such an
// address, by their paths.
func CheckGateways(t *testing.T, answers func(gateway string) map[string]string,
	run func(ctx context.Context, api string, out io.Writer) (code int)) {
	t.Helper()
	silence := make(chan struct{})
	defer close(silence)
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		scheme  string
		want    string
	}{
		"page":   {answering(200, "<html>"), "ws", "answers the handshake of a websocket with 200 OK"},
		"404":    {answering(404, ""), "ws", "answers the handshake of a websocket with 404 Not Found"},
		"silent": {func(http.ResponseWriter, *http.Request) { <-silence }, "ws", "look at"},
		"other":  {greetOddly, "ws", "look at"},
		"http":   {answering(200, "<html>"), "http", "malformed ws or wss URL"},
	} {
		t.Run(name, func(t *testing.T) {
			gateway := httptest.NewServer(tt.handler)
			defer gateway.CloseClientConnections()
			paths := answers(tt.scheme + strings.TrimPrefix(gateway.URL, "http"))
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_,
					_ = io.WriteString(w, paths[r.URL.Path])
			}))
			defer api.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if name == "silent" {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			defer cancel()
			var out bytes.Buffer
			code := run(ctx, api.URL, &out)
			if text := out.String(); code != 1 || !strings.Contains(text, api.URL) ||
				!strings.Contains(text, "answers, but") ||
				!strings.Contains(text, tt.want) || strings.Contains(text, ": ok") {
				t.Errorf("exit %d, want 1, and %q:\n%s", code, tt.want, text)
			}
		})
	}
}

// greetOddly makes a websocket, and sends one frame that is no platform's greeting.
func greetOddly(w http.ResponseWriter, r *http.Request) {
	conn, out, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455
	const frame = `{"op":1,"type":"other"}`
	_, _ = fmt.Fprintf(out,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+
			"%s\r\n\r\n\x81%c%s",
		base64.StdEncoding.EncodeToString(accept[:]), len(frame), frame)
	_ = out.Flush()
}

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "17")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Says runs a command line, and compares its exit code and its output, which has some texts and lacks others.
func Says(t testing.TB, run func(out io.Writer) int, code int, says, not []string) {
	t.Helper()
	var out strings.Builder
	if got := run(&out); got != code {
		t.Errorf("exit %d, want %d", got, code)
	}
	for _, text := range says {
		if !strings.Contains(out.String(), text) {
			t.Errorf("does not say %q:\n%s", text, out.String())
		}
	}
	for _, text := range not {
		if strings.Contains(out.String(), text) {
			t.Errorf("says %q:\n%s", text, out.String())
		}
	}
}
