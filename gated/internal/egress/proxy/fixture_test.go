package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"arizuko/gated/internal/egress/ca"
	"arizuko/gated/internal/egress/secrets"
	"arizuko/pkg/config"
	"arizuko/pkg/egress"
)

// world is a proxy with a net of its own: every name has a public address, and every public address is the upstream.
type world struct {
	*Proxy
	t      testing.TB
	url    string // of the proxy, with the run's token
	bundle string // file with the roots that agents have
	store  *secrets.Store

	https, plain *httptest.Server // what answers at ports 443 and 80, and at any other port by TLS
	names        map[string]string

	mu       sync.Mutex
	rules    egress.Rules
	receipts []*egress.Receipt   // as they are stored
	atBegin  []egress.State      // what was stored first
	ended    chan egress.Receipt // as they are complete
	ask      func(ctx context.Context, r *egress.Receipt, query string, body []byte) (bool, string, error)
	dialed   []string
	looked   []string // names
}

const (
	runToken   = "t0ken"
	publicAddr = "93.184.216.34"
)

// newWorld starts a proxy and an upstream with a handler. Rules are "host path → action secret" as fields.
func newWorld(t testing.TB, upstream http.HandlerFunc, rules ...egress.Rule) *world {
	t.Helper()
	data := t.TempDir()
	authority, err := ca.Open(data, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: secrets.New(data), names: map[string]string{}, ended: make(chan egress.Receipt, 10), bundle: filepath.Join(data, "bundle.pem")}
	for i := range rules {
		rules[i].ID = int64(i + 1)
		w.rules = append(w.rules, &rules[i])
	}
	w.plain = httptest.NewServer(upstream)
	w.https = httptest.NewUnstartedServer(upstream)
	w.https.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.https.EnableHTTP2 = true // so that only the proxy keeps it from being spoken
	w.https.StartTLS()
	t.Cleanup(w.plain.Close)
	t.Cleanup(w.https.Close)

	// The upstream has certificates for all names, of an authority that the proxy trusts and agents do not.
	world, err := ca.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.https.TLS.Certificates = nil
	w.https.TLS.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return world.Leaf(cmp.Or(hello.ServerName, publicAddr))
	}
	roots := x509.NewCertPool()
	public := filepath.Join(data, "world.pem")
	empty := filepath.Join(data, "empty.pem")
	if err := errors.Join(os.WriteFile(empty, nil, 0o600), world.Bundle(empty, public), authority.Bundle(public, w.bundle)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(public)
	if err != nil || !roots.AppendCertsFromPEM(content) {
		t.Fatal(err)
	}
	w.Proxy = New(Config{
		Backend: w, CA: authority, Secrets: w.store, Key: []byte("key"), Roots: roots, Log: slog.New(slog.DiscardHandler),
		Lookup: w.lookup, Dial: w.dialUpstream,
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.Close(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
		for _, r := range w.receipts { // whatever was cut off
			if r.EndedAt == 0 || r.State == egress.Sending || r.State == egress.Asked {
				t.Errorf("the proxy ended before its receipt %+v", r)
			}
		}
	})
	w.url = fmt.Sprintf("http://%s:%s@%s", User, runToken, l.Addr())
	return w
}

func (w *world) lookup(_ context.Context, _, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = append(w.looked, host)
	if text, ok := w.names[host]; ok {
		return []netip.Addr{netip.MustParseAddr(text)}, nil
	}
	if strings.HasSuffix(host, ".invalid") {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr(publicAddr)}, nil
}

func (w *world) dialUpstream(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, addr)
	w.mu.Unlock()
	to := w.https.Listener.Addr().String()
	switch _, port, _ := net.SplitHostPort(addr); {
	case port == "80":
		to = w.plain.Listener.Addr().String()
	case strings.HasPrefix(addr, "127."): // as it is
		to = addr
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

func (w *world) Run(_ context.Context, token string) (Run, error) {
	if token != runToken {
		return Run{}, errors.New("no such run")
	}
	return Run{ID: 7, Turn: 3, Folder: "main"}, nil
}

func (w *world) Rules(context.Context) (egress.Rules, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rules, nil
}

func (w *world) Put(_ context.Context, r *egress.Receipt) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.ID == 0 {
		r.ID = int64(len(w.receipts) + 1)
		w.receipts = append(w.receipts, nil)
		w.atBegin = append(w.atBegin, r.State)
	}
	stored := *r
	w.receipts[r.ID-1] = &stored
	if r.EndedAt != 0 {
		select {
		case w.ended <- stored:
		default:
		}
	}
	return nil
}

func (w *world) Ask(ctx context.Context, _ Run, r *egress.Receipt, query string, body []byte) (bool, string, error) {
	w.mu.Lock()
	ask := w.ask
	w.mu.Unlock()
	if ask == nil {
		return false, "no approver can be reached", nil
	}
	return ask(ctx, r, query, body)
}

func (w *world) Token(folder, name string) string { return secrets.Token([]byte("key"), folder, name) }

func (w *world) setSecret(name, value string) (token string) {
	w.t.Helper()
	if err := w.store.Set(name, value); err != nil {
		w.t.Fatal(err)
	}
	return w.Token("main", name)
}

// last is the newest receipt.
func (w *world) last() egress.Receipt {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.receipts) == 0 {
		return egress.Receipt{}
	}
	return *w.receipts[len(w.receipts)-1]
}

// client is Go's, in a sandbox.
func (w *world) client() *http.Client {
	proxy, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	content, err := os.ReadFile(w.bundle)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(content) {
		w.t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots}}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// do sends a request and returns the answer's status and body; status 0 is an error, which is the body then.
func do(c *http.Client, r *http.Request) (int, string) {
	res, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}

// raw sends bytes to the proxy, inside a tunnel to a host with its port if one is named, with TLS if sni is not "-".
func (w *world) raw(tunnel, sni, text string) string {
	w.t.Helper()
	u, _ := url.Parse(w.url)
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if tunnel != "" {
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nProxy-Authorization: %s\r\n\r\n", tunnel, tunnel, encodeBasic("run:"+runToken))
		head := make([]byte, 1)
		var answer []byte
		for !strings.HasSuffix(string(answer), "\r\n\r\n") {
			if _, err := c.Read(head); err != nil {
				return string(answer)
			}
			answer = append(answer, head...)
		}
		if !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
			rest, _ := io.ReadAll(c)
			return string(answer) + string(rest)
		}
		if sni != "-" {
			secure := tls.Client(c, &tls.Config{ServerName: sni, InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
			if err := secure.Handshake(); err != nil {
				return "handshake: " + err.Error()
			}
			if p := secure.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
				return "it speaks " + p
			}
			c = secure
		}
	}
	text = strings.ReplaceAll(text, "AUTH", "Proxy-Authorization: "+encodeBasic("run:"+runToken))
	if _, err := io.WriteString(c, text); err != nil {
		return "write: " + err.Error()
	}
	answer, _ := io.ReadAll(c)
	return string(answer)
}

func allow(t *testing.T, texts ...string) (n config.Networks) {
	t.Helper()
	if err := n.UnmarshalText([]byte(strings.Join(texts, ","))); err != nil {
		t.Fatal(err)
	}
	return n
}
