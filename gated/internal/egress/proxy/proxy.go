// Package proxy is the way out of a sandbox: an HTTP proxy that decides about each request of an agent by rules, has a
// user asked where no rule decides, and adds the secrets that agents never see.
//
// It is the server, the transport and the reverse proxy of the standard library. github.com/elazarl/goproxy 1.9.4 reads
// what is sent inside a tunnel in a loop of its own, where headers have no limit, slow clients no deadline, and a panic
// ends the process. With net/http, requests inside a tunnel have the same server as those outside.
//
// A passed tunnel is not looked into. A content delivery network may serve other hosts through it than the one that it
// is for; rules with a path or a secret have the tunnel opened.
package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"arizuko/gated/internal/egress/ca"
	"arizuko/gated/internal/egress/secrets"
	"arizuko/pkg/config"
	"arizuko/pkg/egress"
)

// User is the name with which agents log in at the proxy; the password is their run's token.
const User = "run"

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	// maxConns bounds the connections of all agents, and maxRequests what one run may have open at once, so that one
	// agent does not keep the others from the net; maxAsked of them may wait for users, with a call of gated each.
	maxConns    = 2048
	maxRequests = 512
	maxAsked    = 64
	// maxAskBody bounds the body of a request that a user is asked about, in bytes, and maxAskBodies those of all.
	maxAskBody   = 10 << 20
	maxAskBodies = 16 * maxAskBody
	// storeTimeout is for a receipt whose request has ended.
	storeTimeout = 10 * time.Second
)

// Run is a run whose agent sends requests.
type Run struct {
	ID     int64
	Turn   int64 // at work, 0 for none
	Folder string
}

// Backend is what the proxy needs of gated. Its methods may be called at the same time.
type Backend interface {
	// Run returns the live run with a token, as it is now; an error for none.
	Run(ctx context.Context, token string) (Run, error)
	Rules(ctx context.Context) (egress.Rules, error)
	// Put stores a receipt, and sets its ID if that is 0. One with EndedAt is complete, and not put again.
	Put(ctx context.Context, r *egress.Receipt) error
	// Ask asks a user about a request whose body is known, and waits. reason says why not. It may set By and AskID.
	Ask(ctx context.Context, run Run, r *egress.Receipt, query string, body []byte) (ok bool, reason string, err error)
}

// Config is what a proxy works with.
type Config struct {
	Backend Backend
	CA      *ca.CA
	Secrets *secrets.Store
	Key     []byte          // of secrets.Token
	Allowed config.Networks // addresses that agents reach in spite of what they are: private ones, this machine's
	Roots   *x509.CertPool  // that servers are checked against; nil for the system's
	Log     *slog.Logger

	// Lookup and Dial are those of package net if they are nil.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Proxy is the proxy.
type Proxy struct {
	Config
	server    *http.Server
	transport *http.Transport
	slots     chan struct{} // one for each connection
	bodies    *semaphore.Weighted
	tunnels   context.Context //nolint:containedctx // of tunnels, which the server does not know; ends with Close
	cut       context.CancelFunc

	mu    sync.Mutex
	open  map[int64]int  // requests and tunnels by run, and those that wait for users by its negative
	under sync.WaitGroup // all of them
}

// New returns a proxy. Serve starts it.
func New(c Config) *Proxy {
	if c.Lookup == nil {
		c.Lookup = net.DefaultResolver.LookupNetIP
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	p := &Proxy{
		Config: c, slots: make(chan struct{}, maxConns), open: map[int64]int{},
		bodies: semaphore.NewWeighted(maxAskBodies),
	}
	p.tunnels, p.cut = context.WithCancel(context.Background())
	one := new(http.Protocols)
	one.SetHTTP1(true)
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		Protocols: one, ConnContext: withTunnel, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	p.transport = &http.Transport{
		DialContext: p.dial, Protocols: one, DisableCompression: true,
		TLSClientConfig:     &tls.Config{RootCAs: c.Roots, NextProtos: []string{alpn}, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: answerTimeout, ExpectContinueTimeout: time.Second,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: upstreamIdle,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
	return p
}

// Serve serves a listener until Close; then it returns nil. It may be called for several.
func (p *Proxy) Serve(l net.Listener) error {
	if err := p.server.Serve(&listener{l, p.slots, p.tunnels.Done()}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// Close accepts nothing more and waits for the requests under way until ctx ends, when it cuts them off; tunnels it
// cuts at once. Then it waits until their receipts are stored.
func (p *Proxy) Close(ctx context.Context) error {
	p.cut()
	err := p.server.Shutdown(ctx)
	_ = p.server.Close()
	p.transport.CloseIdleConnections()
	p.under.Wait()
	return err
}

// target is where a request goes.
type target struct {
	host string // in lower case, without a dot at its end, or an IP address
	port int
	tls  bool
}

// authority is the host as URLs have it, with the port unless it is the scheme's own.
func (t target) authority() string {
	if t.port == map[bool]int{false: 80, true: 443}[t.tls] {
		if strings.Contains(t.host, ":") {
			return "[" + t.host + "]"
		}
		return t.host
	}
	return net.JoinHostPort(t.host, strconv.Itoa(t.port))
}

// parseAuthority reads "host" or "host:port". port is for one without.
func parseAuthority(text string, port int) (t target, ok bool) {
	host := text
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		n, err := strconv.ParseUint(text[i+1:], 10, 16)
		if err != nil || n == 0 {
			return target{}, false
		}
		host, port = text[:i], int(n)
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if addr, err := netip.ParseAddr(bare); err == nil && addr.Zone() == "" && addr.Is6() == (bare != host) {
		return target{host: addr.Unmap().String(), port: port}, true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	const chars = "abcdefghijklmnopqrstuvwxyz0123456789-._"
	last := host[strings.LastIndexByte(host, '.')+1:]
	// A name that ends with a number is an address in a form of its own for some resolvers, as in 127.1 and 0x7f000001.
	if last == "" || last[0] >= '0' && last[0] <= '9' || len(host) > 253 || strings.Trim(host, chars) != "" {
		return target{}, false
	}
	return target{host: host, port: port}, true
}

// ServeHTTP implements http.Handler, for requests to the proxy and for those inside tunnels.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tunnel, inside := r.Context().Value(tunnelKey{}).(*tunnel)
	token := tokenOf(r)
	if inside {
		token = tunnel.token
	}
	run, err := p.Backend.Run(r.Context(), token)
	switch {
	case inside && err != nil:
		answer(w, http.StatusForbidden, "the run of this connection has ended")
		return
	case token == "" || err != nil:
		w.Header().Set("Proxy-Authenticate", `Basic realm="arizuko"`)
		answer(w, http.StatusProxyAuthRequired, "log in as the URL in HTTPS_PROXY says; the run may have ended")
		return
	}
	release, free := p.acquire(run.ID, maxRequests)
	if !free {
		answer(w, http.StatusServiceUnavailable, fmt.Sprintf("%d requests are open: wait for some to end", maxRequests))
		return
	}
	defer release()
	x := p.newExchange(run, r)
	switch to, ok := plainTarget(r); {
	case inside:
		x.target = tunnel.target
		x.serve(w, r)
	case r.Method == http.MethodConnect:
		p.connect(w, r, x, token)
	case !ok:
		answer(w, http.StatusBadRequest, "want CONNECT host:port, or a URL that begins with http://")
	default:
		x.target = to
		x.serve(w, r)
	}
}

// plainTarget is where a request in absolute form goes.
func plainTarget(r *http.Request) (target, bool) {
	if r.URL.Scheme != "http" || r.URL.User != nil || r.URL.Opaque != "" {
		return target{}, false
	}
	return parseAuthority(r.URL.Host, 80)
}

// tokenOf is the password of the proxy's user, "" for none.
func tokenOf(r *http.Request) string {
	scheme, encoded, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	user, token, _ := strings.Cut(string(decoded), ":")
	if err != nil || user != User || !strings.EqualFold(scheme, "Basic") {
		return ""
	}
	return token
}

// acquire counts a request of a run; free is false if the run has as many as it may.
func (p *Proxy) acquire(run int64, limit int) (release func(), free bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[run] >= limit {
		return nil, false
	}
	p.open[run]++
	p.under.Add(1)
	return func() {
		defer p.under.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open[run]--; p.open[run] == 0 {
			delete(p.open, run)
		}
	}, true
}

// answer is a response of the proxy itself, which an agent can act on.
func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "arizuko: %s\n", text)
}
