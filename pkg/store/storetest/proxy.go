package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is a way to a server that can be made slow and be cut. Connections to it are not encrypted.
type Proxy struct {
	listener net.Listener
	target   *url.URL
	delay    atomic.Int64 // ns
	onCommit atomic.Pointer[func(Link)]
	calls    atomic.Int64

	mu    sync.Mutex
	links map[*Link]bool
	cut   bool
	group sync.WaitGroup
}

// Link is a connection through a proxy.
type Link struct{ client, server net.Conn }

// Cut ends both sides at once.
func (l Link) Cut() { _ = errors.Join(l.client.Close(), l.server.Close()) }

// CutClient ends the client's side; the server reads on what was sent.
func (l Link) CutClient() { _ = l.client.Close() }

// preparedCommit is what pgx calls the prepared statement COMMIT.
var preparedCommit = func() []byte {
	hash := sha256.Sum256([]byte("COMMIT"))
	return []byte("stmtcache_" + hex.EncodeToString(hash[:24]) + "\x00")
}()

// NewProxy starts a proxy for the server that a URL names.
func NewProxy(target string) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: u, links: map[*Link]bool{}}
	p.group.Go(p.accept)
	return p, nil
}

// URL is the target's by way of the proxy.
func (p *Proxy) URL() string {
	u, query := *p.target, p.target.Query()
	query.Del("host")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = p.listener.Addr().String(), query.Encode()
	return u.String()
}

// Delay makes each call of a client reach the server so much later.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Calls is the number of calls of clients so far: what a client sends before it waits for the server is one.
func (p *Proxy) Calls() int64 { return p.calls.Load() }

// OnCommit calls fn before a client's COMMIT is passed on; nil for no call.
func (p *Proxy) OnCommit(fn func(Link)) {
	if fn == nil {
		p.onCommit.Store(nil)
		return
	}
	p.onCommit.Store(&fn)
}

// Cut ends all connections and, until Heal, each new one.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for link := range p.links {
		link.Cut()
	}
}

// Heal lets connections through again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Cut()
	p.group.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.group.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := p.dial()
	if err != nil {
		return
	}
	defer server.Close()
	link := &Link{client, server}
	p.mu.Lock()
	p.links[link] = true
	if p.cut {
		link.Cut()
	}
	p.mu.Unlock()
	var answers sync.WaitGroup
	answers.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	p.forward(*link)
	_ = server.Close()
	answers.Wait()
	p.mu.Lock()
	delete(p.links, link)
	p.mu.Unlock()
}

func (p *Proxy) dial() (net.Conn, error) {
	if dir := p.target.Query().Get("host"); dir != "" {
		return net.Dial("unix", dir+"/.s.PGSQL.5432")
	}
	return net.Dial("tcp", p.target.Host)
}

// sent is what a client sent, and when.
type sent struct {
	data []byte
	at   time.Time
}

// forward passes on what the client sends, each part as late as the delay says: it does not wait for the part before.
func (p *Proxy) forward(link Link) {
	queue := make(chan sent, 1024)
	var writer sync.WaitGroup
	writer.Go(func() {
		for part := range queue {
			<-time.After(time.Until(part.at.Add(time.Duration(p.delay.Load()))))
			if fn := p.onCommit.Load(); fn != nil && bytes.Contains(part.data, preparedCommit) {
				(*fn)(link)
			}
			_, _ = link.server.Write(part.data) // the other direction ends the connection
		}
	})
	buf := make([]byte, 1<<16)
	for {
		n, err := link.client.Read(buf)
		if n > 0 {
			p.calls.Add(1)
			queue <- sent{bytes.Clone(buf[:n]), time.Now()}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	writer.Wait()
}

// WasCut reports whether the proxy is cut.
func (p *Proxy) WasCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}
