package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

const (
	// writeTimeout is how long a peer may leave what it is sent unread, readTimeout how long an agent may send nothing
	// of a body that it has begun.
	writeTimeout = 2 * time.Minute
	readTimeout  = 5 * time.Minute
)

// listener bounds the connections.
type listener struct {
	net.Listener
	slots chan struct{}
	done  <-chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &conn{Conn: c, closed: sync.OnceFunc(func() { <-l.slots })}, nil
}

// conn is a connection to an agent or a server, which fails if its peer does not read.
type conn struct {
	net.Conn
	closed func() // called once, nil for nothing
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	if c.closed != nil {
		c.closed()
	}
	return c.Conn.Close()
}

// closeWrite says that nothing more is sent.
func (c *conn) closeWrite() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// tunnel is a connection of an agent to one host, in which the proxy reads requests.
type tunnel struct {
	target
	token string
}

type tunnelKey struct{}

// innerConn is the agent's side of a tunnel that is opened.
type innerConn struct {
	net.Conn
	read   *bufio.Reader // what the agent has sent already comes first
	tunnel *tunnel
}

func (c *innerConn) Read(b []byte) (int, error) {
	if c.read.Buffered() > 0 {
		return c.read.Read(b)
	}
	return c.Conn.Read(b)
}

// withTunnel is an http.Server's ConnContext.
func withTunnel(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if in, ok := c.(*innerConn); ok {
		return context.WithValue(ctx, tunnelKey{}, in.tunnel)
	}
	return ctx
}

// single is a listener with one connection, which is nil once it is accepted.
type single struct{ net.Conn }

func (l *single) Accept() (net.Conn, error) {
	c := l.Conn
	if l.Conn = nil; c == nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *single) Close() error {
	if l.Conn == nil {
		return nil
	}
	return l.Conn.Close()
}

func (l *single) Addr() net.Addr { return &net.UnixAddr{Name: "tunnel", Net: "unix"} }
