package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"arizuko/pkg/egress"
)

const (
	httpsPort = 443
	// handshake is the first byte of a TLS connection.
	handshake = 22
)

// connect answers a CONNECT: with a tunnel, one in which requests are decided one by one, or a refusal.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request, x *exchange, token string) {
	defer x.finish(r)
	to, ok := parseAuthority(r.RequestURI, 0)
	if !ok || to.port == 0 {
		x.skip = true
		answer(w, http.StatusBadRequest, "want CONNECT host:port")
		return
	}
	to.tls = true
	x.target = to
	x.receipt.Host, x.receipt.Port = to.host, to.port
	rules, err := p.Backend.Rules(r.Context())
	if err != nil {
		x.fail(w, fmt.Errorf("read the rules: %w", err))
		return
	}
	rule, decided := rules.ForHost(&egress.Request{Folder: x.run.Folder, Host: to.host, Port: to.port})
	x.setRule(rule)
	switch err = p.checkLiteral(to.host); {
	case err != nil:
	case !decided:
		err = p.look(w, x, &tunnel{to, token})
	case rule.Action == egress.Deny:
		err = refuse("a rule forbids %s", to.host)
	default:
		err = p.pass(w, r, x)
	}
	if err != nil {
		x.fail(w, err)
	}
}

// hijack takes the connection over and says that the tunnel is there.
func (p *Proxy) hijack(w http.ResponseWriter) (net.Conn, *bufio.Reader, error) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, rw.Reader, nil
}

// look makes a tunnel whose requests the proxy reads.
func (p *Proxy) look(w http.ResponseWriter, x *exchange, t *tunnel) error {
	c, read, err := p.hijack(w)
	if err != nil {
		return err
	}
	x.hijacked, x.skip = true, true
	_ = c.SetReadDeadline(time.Now().Add(headerTimeout))
	first, err := read.Peek(1)
	if err != nil {
		return c.Close() // it was given up before anything was sent
	}
	_ = c.SetReadDeadline(time.Time{})
	t.tls = first[0] == handshake
	in := &innerConn{Conn: c, read: read, tunnel: t}
	switch {
	case t.tls:
		_ = p.server.Serve(&single{tls.Server(in, p.certificates(x))})
	case t.port == httpsPort:
		x.skip = false
		return errors.Join(refuse(errNotTLS), c.Close())
	default: // as clients of WebSockets do for ws://
		_ = p.server.Serve(&single{in})
	}
	return nil
}

const errNotTLS = "what was sent through the tunnel to port 443 is not TLS"

// certificates are the settings of a connection that pretends to be the tunnel's host.
func (p *Proxy) certificates(x *exchange) *tls.Config {
	host := x.host
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{alpn},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName != "" && !sameName(hello.ServerName, host) {
				y := &exchange{p: p, run: x.run, target: x.target, receipt: x.receipt} // x has ended
				y.receipt.State, y.receipt.Reason = egress.Refused, wrongName(hello.ServerName, host)
				y.store(context.Background())
				return nil, errors.New("the name is not the tunnel's host")
			}
			return p.CA.Leaf(host)
		},
	}
}

func sameName(sni, host string) bool {
	if _, err := netip.ParseAddr(host); err == nil && sni == "" {
		return true
	}
	return strings.EqualFold(sni, host)
}

func wrongName(sni, host string) string {
	return fmt.Sprintf("TLS in the tunnel to %s names %.260q as its host", host, sni)
}

// pass makes a tunnel that is not looked into, except for the host that TLS begins with. A server may serve other hosts
// at the same address, which only the rules of a tunnel that is opened can tell apart.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, x *exchange) error {
	up, err := p.dial(r.Context(), "tcp", x.dialAddr())
	if err != nil {
		return err
	}
	defer up.Close()
	c, read, err := p.hijack(w)
	if err != nil {
		return err
	}
	defer c.Close()
	x.hijacked = true
	defer context.AfterFunc(p.tunnels, func() { _, _ = c.Close(), up.Close() })()
	hello, reason := x.hello(c, read)
	if reason != "" {
		return refuse("%s", reason)
	}
	x.receipt.State = egress.Sending
	if err := x.put(r.Context()); err != nil {
		return err
	}
	down := make(chan struct{})
	go func() {
		defer close(down)
		n, _ := io.Copy(c, up)
		x.in.Add(n)
		c.(*conn).closeWrite()
	}()
	n, _ := io.Copy(up, io.MultiReader(bytes.NewReader(hello), read))
	x.out.Add(n)
	up.(*conn).closeWrite()
	_ = up.SetReadDeadline(time.Now().Add(answerTimeout)) // the agent may be gone
	<-down
	x.receipt.State = egress.Sent
	return nil
}

// hello reads how TLS begins and returns what it has read of the connection, or why it is refused.
func (x *exchange) hello(c net.Conn, read *bufio.Reader) (sent []byte, reason string) {
	_ = c.SetReadDeadline(time.Now().Add(headerTimeout))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	first, err := read.Peek(1)
	switch {
	case err != nil:
		return nil, "nothing was sent through the tunnel"
	case first[0] != handshake && x.port == httpsPort:
		return nil, errNotTLS
	case first[0] != handshake:
		return nil, ""
	}
	var buf bytes.Buffer
	var name *string
	_ = tls.Server(helloConn{c, io.TeeReader(read, &buf)}, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = &hello.ServerName
			return nil, io.EOF // that is all
		},
	}).Handshake()
	switch {
	case name == nil:
		return nil, "what was sent through the tunnel is not TLS"
	case !sameName(*name, x.host):
		return nil, wrongName(*name, x.host)
	}
	return buf.Bytes(), ""
}

// helloConn is read, and never written to.
type helloConn struct {
	net.Conn
	read io.Reader
}

func (c helloConn) Read(b []byte) (int, error) { return c.read.Read(b) }

func (c helloConn) Write([]byte) (int, error) { return 0, io.EOF }
