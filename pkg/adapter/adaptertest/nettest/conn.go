package nettest

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// link carries what a client and the server send each other, between a pipe to each, so that it can be held or reset.
type link struct {
	toClient, toServer net.Conn
	held, broken       atomic.Bool
}

// newLink makes a link, and both ends of its connection. It calls closed once it carries nothing any more.
func newLink(client, server net.Addr, closed func(*link)) (l *link, atClient, atServer net.Conn) {
	l = &link{}
	var c, s net.Conn
	c, l.toClient = net.Pipe()
	s, l.toServer = net.Pipe()
	var carrying sync.WaitGroup
	carrying.Go(func() { l.carry(l.toClient, l.toServer) })
	carrying.Go(func() { l.carry(l.toServer, l.toClient) })
	go func() {
		carrying.Wait()
		closed(l)
	}()
	return l, &conn{c, l, client, server}, &conn{s, l, server, client}
}

// carry hands on what comes from one end. While the link is held it is lost, and so is the news
// that the end has closed.
func (l *link) carry(from, to net.Conn) {
	data := make([]byte, 32<<10)
	for {
		n, err := from.Read(data)
		if l.held.Load() {
			if err != nil {
				return
			}
			continue
		}
		if err == nil {
			_, err = to.Write(data[:n])
		}
		if err != nil {
			_, _ = from.Close(), to.Close() // which never fails
			return
		}
	}
}

// reset breaks the connection for both ends at once.
func (l *link) reset() {
	l.broken.Store(true)
	_, _ = l.toClient.Close(), l.toServer.Close()
}

// resetAtFirstByte resets the connection when the client has begun to write. The server never gets it.
func (l *link) resetAtFirstByte(atServer net.Conn) {
	_, _ = atServer.Read(make([]byte, 1)) // then the other end is gone
	l.reset()
}

// conn is one end of a connection.
type conn struct {
	net.Conn
	link          *link
	local, remote net.Addr
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.cause(err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.cause(err)
}

// cause is an error as the network reports it.
func (c *conn) cause(err error) error {
	if err != nil && c.link.broken.Load() {
		return syscall.ECONNRESET
	}
	return err
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }
