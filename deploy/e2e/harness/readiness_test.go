package harness

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answers has somebody answer in a daemon's place, and counts the questions.
func answers(t *testing.T, i *Instance, name string, ready func(asked int64) (status int, body string)) *atomic.Int64 {
	t.Helper()
	l, err := net.Listen("tcp", strings.TrimPrefix(i.URL(name), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, body := ready(asked.Add(1))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	return &asked
}

func TestAwaitReady(t *testing.T) {
	i := scripted(t, map[string]string{"routd": sleeps})
	asked := answers(t, i, "routd", func(asked int64) (int, string) {
		if asked < 3 {
			return http.StatusServiceUnavailable, "waits"
		}
		return http.StatusOK, "ready"
	})
	start(t, i, "routd")
	if err := i.AwaitReady(patient(t), "routd"); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("it was asked %d times", n)
	}
}

func TestAwaitReadyOfWhatEnds(t *testing.T) {
	i := scripted(t, map[string]string{"routd": `exit 78`})
	if err := i.Start("routd"); err != nil {
		t.Fatal(err)
	}
	if got, want := said(i.AwaitReady(patient(t), "routd")), "routd ended: exit status 78"; got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}

func TestAwaitReadyOfWhatNeverIs(t *testing.T) {
	i := scripted(t, map[string]string{"routd": sleeps})
	answers(t, i, "routd", func(int64) (int, string) { return http.StatusServiceUnavailable, "" })
	start(t, i, "routd")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := i.AwaitReady(ctx, "routd")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "waited in vain for routd to be ready") {
		t.Errorf("the error is %v", err)
	}
}

func TestReadiness(t *testing.T) {
	i := scripted(t, nil)
	if status, body := i.Readiness(t.Context(), "routd"); status != 0 || body != "" {
		t.Errorf("nobody answers %d %q", status, body)
	}
	answers(t, i, "routd", func(int64) (int, string) { return http.StatusServiceUnavailable, strings.Repeat("x", readinessMost+1) })
	if status, body := i.Readiness(t.Context(), "routd"); status != http.StatusServiceUnavailable || len(body) != readinessMost {
		t.Errorf("it answers %d with %d bytes", status, len(body))
	}
	if status, _ := i.Readiness(t.Context(), "gated"); status != 0 {
		t.Errorf("gated answers %d in routd's place", status)
	}
}
