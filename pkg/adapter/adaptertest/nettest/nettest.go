// Package nettest is a network in memory. A server and its clients in one bubble of testing/synctest wait for
// each other without holding up the bubble's clock, so that half an hour of outage takes milliseconds:
//
//	n := nettest.Serve(t, fake)
//	clients := adapter.Network{Dial: n.Dial, TLS: n.TLS()}
//	… https://any.host and ws://any.host are the fake
//	n.SetOutage(adaptertest.Outage{Kind: adaptertest.Silent})
package nettest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/adapter/adaptertest"
)

// The ports of the server.
const (
	plainPort = "80"
	tlsPort   = "443"
)

// latency is how long each request takes.
const latency = time.Millisecond

// Network connects clients to one server, whatever host they dial. It may be used from many goroutines.
type Network struct {
	handler http.Handler
	trusted *tls.Config
	ports   map[string]*listener

	mu     sync.Mutex
	outage adaptertest.Outage
	over   chan struct{}  // closed when the outage changes
	links  map[*link]bool // of open connections
	dials  int
	asked  int // requests
}

// Serve makes a network whose server answers HTTP at port 80, and HTTPS with HTTP/2 at port 443, until the test ends.
func Serve(t testing.TB, handler http.Handler) *Network {
	t.Helper()
	certificate, trusted, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	n := &Network{
		handler: handler, trusted: trusted, over: make(chan struct{}), links: map[*link]bool{},
		ports: map[string]*listener{plainPort: newListener(), tlsPort: newListener()},
	}
	// Two servers, since one that serves without TLS does not offer HTTP/2.
	plain, secure := n.server(), n.server()
	secure.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}} //nolint:gosec // for tests
	var serving sync.WaitGroup
	serving.Go(func() { _ = plain.Serve(n.ports[plainPort]) }) // until Close
	serving.Go(func() { _ = secure.ServeTLS(n.ports[tlsPort], "", "") })
	t.Cleanup(func() {
		n.SetOutage(adaptertest.Outage{Kind: adaptertest.Refusing})
		_, _ = plain.Close(), secure.Close() // errors of listeners that are closed
		serving.Wait()
	})
	return n
}

func (n *Network) server() *http.Server {
	return &http.Server{Handler: http.HandlerFunc(n.serve),
		ErrorLog: log.New(io.Discard, "", 0)} //nolint:gosec // its clients are the test's
}

// TLS is the configuration of clients that trust the server, whatever host they dialed.
func (n *Network) TLS() *tls.Config { return n.trusted.Clone() }

// Dials is how many connections clients have tried to make.
func (n *Network) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// Requests is how many requests have arrived.
func (n *Network) Requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// SetOutage replaces what is wrong with the network. Every kind but None breaks the open connections: Silent by
// never delivering what is sent on them, the others by a reset.
func (n *Network) SetOutage(o adaptertest.Outage) {
	n.mu.Lock()
	n.outage = o
	close(n.over)
	n.over = make(chan struct{})
	open := slices.Collect(maps.Keys(n.links))
	n.mu.Unlock()
	for _, l := range open {
		switch o.Kind {
		case adaptertest.None:
		case adaptertest.Silent:
			l.held.Store(true)
		default:
			l.reset()
		}
	}
}

// Dial is the dial function of clients.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	l := n.ports[port]
	if l == nil || n.outage.Kind == adaptertest.Refusing {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: address(addr), Err: syscall.ECONNREFUSED}
	}
	made, client, server := newLink(address("client:"+strconv.Itoa(n.dials)), address(addr), n.forget)
	n.links[made] = true
	switch n.outage.Kind {
	case adaptertest.Silent:
		made.held.Store(true)
		return client, nil
	case adaptertest.ResettingTLS:
		go made.resetAtFirstByte(server)
		return client, nil
	}
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		err = syscall.ECONNREFUSED
	case <-ctx.Done():
		err = ctx.Err()
	}
	made.reset()
	return nil, err
}

func (n *Network) forget(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.links, l)
}

// serve answers a request as the outage allows.
func (n *Network) serve(w http.ResponseWriter, r *http.Request) {
	time.Sleep(latency) //nolint:forbidigo // time passes while calls are made
	n.mu.Lock()
	o, over := n.outage, n.over
	n.asked++
	n.mu.Unlock()
	switch o.Kind {
	case adaptertest.Unanswering:
		_, _ = io.Copy(io.Discard, r.Body) // the client is gone
		select {
		case <-over:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case adaptertest.Paging:
		_, _ = io.Copy(io.Discard, r.Body)
		writePage(w, o)
	case adaptertest.CuttingRequests:
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	case adaptertest.CuttingAnswers:
		n.handler.ServeHTTP(&discarded{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	default:
		n.handler.ServeHTTP(w, r)
	}
}

// writePage answers as a server in front of the platform's does.
func writePage(w http.ResponseWriter, o adaptertest.Outage) {
	w.Header().Set("Server", "cloudflare")
	if o.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(o.RetryAfter.Seconds())))
	}
	text, kind := o.Text, "text/plain"
	switch {
	case text == "":
		kind, text = "text/html", "<!DOCTYPE html>\n<html><head><title>"+strconv.Itoa(o.Status)+
			"</title></head><body><center><h1>"+
			http.StatusText(o.Status)+"</h1></center><hr><center>cloudflare</center></body></html>\n"
	case text[0] == '{':
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind+"; charset=UTF-8")
	w.WriteHeader(o.Status)
	_, _ = io.WriteString(w, text)
}

// discarded is an answer that the client does not get.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(int)             {}

// address is the address of one end, "host:port".
type address string

func (a address) Network() string { return "mem" }
func (a address) String() string  { return string(a) }

// listener accepts the connections of one port.
type listener struct {
	accept chan net.Conn
	closed chan struct{}
	close  func()
}

func newListener() *listener {
	l := &listener{accept: make(chan net.Conn, 1000), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.close()
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return address("memory") }
