package adaptertest

import (
	"bytes"
	"context"
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
		"other JSON":   {answering(404, `{"detail":"Not Found"}`), "look at " + variable},
		"other text":   {answering(404, "404 page not found"), "with 404 page not found: this is not "},
		"502":          {answering(502, "<html>"), "answers 502 Bad Gateway: it, or the server behind it, is out of order"},
		"503":          {answering(503, ""), "answers 503 Service Unavailable"},
		"429":          {answering(429, "<html>"), "check again in 17s"},
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
			if text := out.String(); code != 1 || !strings.Contains(text, tt.want) || strings.Contains(text, "connects as") || strings.Contains(text, ": ok") {
				t.Errorf("exit %d, want 1, and %q:\n%s", code, tt.want, text)
			}
		})
	}
}

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "17")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}
