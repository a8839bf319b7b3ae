package httpx_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"arizuko/pkg/httpx"
)

func TestServer_Close_FinishesRequests(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	srv, err := httpx.Listen("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "done")
	}), discard())
	if err != nil {
		t.Fatal(err)
	}
	served, answer, closed := make(chan error, 1), make(chan string, 1), make(chan error, 1)
	go func() { served <- srv.Serve() }()
	go func() { answer <- fetch("http://" + srv.Addr()) }()
	<-entered
	go func() { closed <- srv.Close(t.Context()) }()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	close(release)
	if got := <-answer; got != "done" {
		t.Errorf("the running request got %q", got)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestServer_CloseTimesOut_CutsRequestsOff(t *testing.T) {
	entered := make(chan struct{})
	srv, err := httpx.Listen("127.0.0.1:0", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}), discard())
	if err != nil {
		t.Fatal(err)
	}
	served, answer := make(chan error, 1), make(chan string, 1)
	go func() { served <- srv.Serve() }()
	go func() { answer <- fetch("http://" + srv.Addr()) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := srv.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	<-served
	if got := <-answer; !strings.HasPrefix(got, "error") {
		t.Errorf("got %q", got)
	}
}

func TestServer_ClosedBeforeServe_FreesPort(t *testing.T) {
	// The ports of 127.0.0.1 are given to every connection of the machine.
	listener, err := net.Listen("tcp", "127.7.8.9:0")
	if err != nil {
		t.Fatal(err)
	}
	// A child process has the socket, too, until it runs its program.
	child, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	srv := httpx.NewServer(listener, http.NotFoundHandler(), discard())
	for range 2 {
		if err := srv.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := srv.Serve(); err != nil {
		t.Errorf("Serve after Close: %v", err)
	}
	again, err := httpx.Listen(srv.Addr(), http.NotFoundHandler(), discard())
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	again.Close(t.Context())
}

func TestListen_AddressInUse_IsNamed(t *testing.T) {
	first, err := httpx.Listen("127.0.0.1:0", http.NotFoundHandler(), discard())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close(t.Context())
	if _, err := httpx.Listen(first.Addr(), http.NotFoundHandler(), discard()); err == nil || !strings.Contains(err.Error(), first.Addr()) {
		t.Errorf("got %v", err)
	}
}

// fetch returns the body, or "error: …".
func fetch(url string) string {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err != nil {
		return "error: " + err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(body)
}
