package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
)

// webNetwork is the network between users' browsers and dashd. In an outage other than a refused connection
// dashd gets each request and only its answer is lost: that is worse, since the browser posts a stored message again.
type webNetwork struct {
	dashd http.RoundTripper

	mu                     sync.Mutex
	refuses, resets, hangs bool
	paging                 int             // the status of the page that answers, 0 for none
	connections            context.Context //nolint:containedctx // of the requests that are under way
	dropAll                context.CancelFunc
}

func newWebNetwork(dashd http.RoundTripper) *webNetwork {
	n := &webNetwork{dashd: dashd}
	n.connections, n.dropAll = context.WithCancel(context.Background())
	return n
}

// set changes the network, and closes all connections if that is an outage.
func (n *webNetwork) set(outage bool, change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	if outage {
		n.dropAll()
		n.connections, n.dropAll = context.WithCancel(context.Background())
	}
}

// SetListening implements chatsim.Network.
func (n *webNetwork) SetListening(ok bool) error {
	n.set(!ok, func() { n.refuses = !ok })
	return nil
}

// SetReachable implements chatsim.Network.
func (n *webNetwork) SetReachable(ok bool) { n.set(!ok, func() { n.resets = !ok }) }

// SetAnswering implements chatsim.Network.
func (n *webNetwork) SetAnswering(ok bool) { n.set(!ok, func() { n.hangs = !ok }) }

// SetPaging implements chatsim.Network.
func (n *webNetwork) SetPaging(status int) { n.set(status != 0, func() { n.paging = status }) }

// RoundTrip implements http.RoundTripper.
func (n *webNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	refuses, resets, hangs, paging, connections := n.refuses, n.resets, n.hangs, n.paging, n.connections
	n.mu.Unlock()
	if refuses {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, syscall.ECONNREFUSED
	}

	answer, err := n.dashd.RoundTrip(r)
	if !resets && !hangs && paging == 0 && connections.Err() == nil {
		return answer, err
	}
	if err == nil {
		_ = answer.Body.Close()
	}
	switch {
	case paging != 0:
		return page(r, paging), nil
	case hangs:
		select {
		case <-connections.Done():
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return nil, syscall.ECONNRESET
}

// page is a proxy's answer.
func page(r *http.Request, status int) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/html"}},
		Body:   io.NopCloser(strings.NewReader("<html>" + http.StatusText(status) + "</html>")), Request: r,
	}
}
