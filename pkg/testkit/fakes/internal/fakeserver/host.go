package fakeserver

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"arizuko/pkg/httpx"
)

// Host serves a fake, and puts it out of reach. The zero value is ready. It may be used while
// the fake's own lock is held.
type Host struct {
	mu     sync.Mutex
	base   string
	life   context.Context // nil before somebody asks for it
	cut    context.CancelFunc
	http   *httpx.Server
	served chan struct{} // closed when http is done
}

// StartWith serves at addr, "host:port" with port 0 for a free one, until Close, and returns
// the base of its URLs, "http://host:port". The handler is the fake, or one around it that adds
// pages. After Close it may be started again.
func (h *Host) StartWith(addr string, handler http.Handler) (string, error) {
	server, err := httpx.Listen(addr, handler, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	h.SetReachable(true)
	served := make(chan struct{})
	base := "http://" + server.Addr()
	h.mu.Lock()
	h.http, h.served, h.base = server, served, base
	h.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve() // what it could say, Close is told too
	}()
	return base, nil
}

// Close breaks every connection and stops serving. What happened can still be looked at.
func (h *Host) Close() error {
	h.SetReachable(false)
	h.mu.Lock()
	server, served := h.http, h.served
	h.http = nil
	h.mu.Unlock()
	if server == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // open requests are broken off, not waited for
	_ = server.Close(ctx)
	<-served
	return nil
}

// SetReachable(false) breaks every connection, long-lived ones too, and every later one before it
// is answered, until SetReachable(true).
func (h *Host) SetReachable(ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := h.alive().Err() != nil
	switch {
	case !ok:
		h.cut()
	case gone:
		h.life = nil
	}
}

// Life is for how long the connections of now can last: until SetReachable(false) or Close. It is over
// already while the fake is out of reach.
func (h *Host) Life() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.alive()
}

// alive is Life. The lock is held.
func (h *Host) alive() context.Context {
	if h.life == nil {
		h.life, h.cut = context.WithCancel(context.Background())
	}
	return h.life
}

// CutOff breaks the connection of a request while the fake is out of reach.
func (h *Host) CutOff() {
	if h.Life().Err() != nil {
		Break()
	}
}

// Hold lets the call of ctx wait for d, and breaks its connection if that is gone by then.
func (h *Host) Hold(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	life := h.Life()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-life.Done():
	case <-ctx.Done():
	}
	if life.Err() != nil || ctx.Err() != nil {
		Break()
	}
}

// Base is the base of the fake's URLs, "http://host:port"; "" if nobody knows yet.
func (h *Host) Base() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.base
}

// FoundAt tells a fake that was not started here where it is, from a request's Host.
func (h *Host) FoundAt(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.base == "" {
		h.base = "http://" + host
	}
}
