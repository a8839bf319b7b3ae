package fakeserver

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"arizuko/pkg/httpx"
)

// Host serves a fake, and makes it unreachable. The zero value is ready. Its methods may be called
// while the fake's own lock is held.
type Host struct {
	mu     sync.Mutex
	base   string
	hangs  bool
	paging int             // the status of the page that answers every request; 0 for none
	conns  context.Context //nolint:containedctx // done when the open connections break; nil until it is needed
	abort  context.CancelFunc
	http   *httpx.Server
	served chan struct{} // closed when http has stopped
}

// StartWith serves at addr, "host:port" with port 0 for a free one, until Close, and returns the
// base of its URLs, "http://host:port". The handler is the fake, or one around it that adds pages.
// It may be started again after Close.
func (h *Host) StartWith(addr string, handler http.Handler) (string, error) {
	server, err := httpx.Listen(addr, h.answering(handler), slog.New(slog.DiscardHandler))
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
		_ = server.Serve() // Close returns its error too
	}()
	return base, nil
}

// Close breaks every connection and stops serving. The record remains.
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
	cancel() // open requests are aborted, not awaited
	_ = server.Close(ctx)
	<-served
	return nil
}

// SetReachable with false breaks every connection, long-lived ones too, and every later one before
// it is answered, until SetReachable(true).
func (h *Host) SetReachable(ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	unreachable := h.connContext().Err() != nil
	switch {
	case !ok:
		h.abort()
	case unreachable:
		h.conns = nil
	}
}

// SetAnswering with false breaks every connection; later ones are accepted, and requests on them are
// not answered, also not after SetAnswering(true).
func (h *Host) SetAnswering(ok bool) {
	h.mu.Lock()
	h.hangs = !ok
	h.mu.Unlock()
	if !ok {
		h.SetReachable(false)
		h.SetReachable(true)
	}
}

// SetPaging breaks every connection, and answers every later request with an HTML page of a status, as a proxy
// before the platform does while that is out of order, until SetPaging(0).
func (h *Host) SetPaging(status int) {
	h.mu.Lock()
	h.paging = status
	h.mu.Unlock()
	if status != 0 {
		h.SetReachable(false)
		h.SetReachable(true)
	}
}

// answering handles the requests that come while the fake answers.
func (h *Host) answering(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		hangs, paging, conns := h.hangs, h.paging, h.connContext()
		h.mu.Unlock()
		if paging != 0 {
			writePage(w, r, paging)
			return
		}
		if hangs {
			select {
			case <-conns.Done():
			case <-r.Context().Done():
			}
			Abort()
		}
		handler.ServeHTTP(w, r)
	})
}

// writePage answers a request with a page of a status.
func writePage(w http.ResponseWriter, r *http.Request, status int) {
	_, _ = io.Copy(io.Discard, r.Body) // the client is gone
	text := http.StatusText(status)
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	WriteRaw(w, status, "<!DOCTYPE html>\n<html><head><title>"+text+"</title></head><body><center><h1>"+text+
		"</h1></center></body></html>\n")
}

// ConnContext is done when the connections that are open now break: at SetReachable(false) and
// Close. It is done already while the fake is unreachable.
func (h *Host) ConnContext() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.connContext()
}

// connContext is ConnContext with the lock held.
func (h *Host) connContext() context.Context {
	if h.conns == nil {
		h.conns, h.abort = context.WithCancel(context.Background())
	}
	return h.conns
}

// AbortIfUnreachable breaks the connection of a request while the fake is unreachable.
func (h *Host) AbortIfUnreachable() {
	if h.ConnContext().Err() != nil {
		Abort()
	}
}

// Around carries a call out under the delay of a fault, before it or after it. It breaks the
// connection, instead of letting the caller answer, if the fake has become unreachable.
func (h *Host) Around(ctx context.Context, delay time.Duration, after bool, carryOut func()) {
	if !after {
		h.Hold(ctx, delay)
	}
	carryOut()
	if after {
		h.Hold(ctx, delay)
	}
	h.AbortIfUnreachable()
}

// Hold delays a call, and breaks its connection if the client has gone or the fake has become
// unreachable meanwhile.
func (h *Host) Hold(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	conns := h.ConnContext()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-conns.Done():
	case <-ctx.Done():
	}
	if conns.Err() != nil || ctx.Err() != nil {
		Abort()
	}
}

// Base is the base of the fake's URLs, "http://host:port"; "" if it is not known yet.
func (h *Host) Base() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.base
}

// LearnBase takes the base from the Host of a request, if the fake was not started by StartWith.
func (h *Host) LearnBase(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.base == "" {
		h.base = "http://" + host
	}
}
