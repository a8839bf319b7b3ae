package harness

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// serveReadyz answers /readyz at a daemon's address and counts the requests.
func serveReadyz(t *testing.T, i *Instance, name string, ready func(requests int64) (status int, body string)) *atomic.Int64 {
	t.Helper()
	l, err := net.Listen("tcp", strings.TrimPrefix(i.URL(name), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, body := ready(requests.Add(1))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	return &requests
}

func TestAwaitReady_EndedDaemon_ReturnsItsState(t *testing.T) {
	i := scripted(t, map[string]string{"routd": `exit 78`})
	if err := i.Start("routd"); err != nil {
		t.Fatal(err)
	}
	if got, want := text(i.AwaitReady(testTimeout(t), "routd")), "routd ended: exit status 78"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestReadiness_Answer_StatusAndCutBody(t *testing.T) {
	i := scripted(t, nil)
	if status, body := i.Readiness(t.Context(), "routd"); status != 0 || body != "" {
		t.Errorf("without a server: %d %q", status, body)
	}
	serveReadyz(t, i, "routd", func(int64) (int, string) { return http.StatusServiceUnavailable, strings.Repeat("x", maxReadiness+1) })
	if status, body := i.Readiness(t.Context(), "routd"); status != http.StatusServiceUnavailable || len(body) != maxReadiness {
		t.Errorf("status %d, %d bytes", status, len(body))
	}
	if status, _ := i.Readiness(t.Context(), "gated"); status != 0 {
		t.Errorf("gated answers %d at routd's address", status)
	}
}
