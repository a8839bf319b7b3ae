// Package link has a TCP proxy that stands for the network between two machines: tests cut it.
package link

import (
	"errors"
	"io"
	"net"
	"sync"
)

// Link passes connections on to an address until it is cut. It is safe for concurrent use.
type Link struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	cut    Cut
	healed chan struct{} // closed while nothing is held up
	closed bool
}

// Cut is how a link fails.
type Cut int

const (
	// None passes everything on.
	None Cut = iota
	// Reset ends all connections, and each new one.
	Reset
	// Hole holds everything up, as a network that drops packets does: neither side notices until a timeout. What was
	// sent meanwhile arrives when the link is healed.
	Hole
)

// String names the cut in logs.
func (c Cut) String() string { return [...]string{"whole", "reset", "silent"}[c] }

// New listens on an address, host:port, and passes on to another one, which needs not listen yet.
func New(addr, target string) (*Link, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	l := &Link{listener: listener, target: target, conns: map[net.Conn]bool{}, healed: make(chan struct{})}
	close(l.healed)
	l.group.Go(l.accept)
	return l, nil
}

// Addr is where the link listens, as host:port.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Set cuts the link, or heals it with None.
func (l *Link) Set(cut Cut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.cut == Hole && cut != Hole {
		close(l.healed)
	}
	if l.cut != Hole && cut == Hole {
		l.healed = make(chan struct{})
	}
	l.cut = cut
	if cut == Reset {
		l.endAll()
	}
}

func (l *Link) endAll() {
	for conn := range l.conns {
		_ = conn.Close() // the goroutine that reads from it ends the other side
	}
}

// Close ends the link and its connections.
func (l *Link) Close() error {
	l.Set(Reset)
	err := l.listener.Close()
	l.mu.Lock()
	l.closed = true
	l.endAll()
	l.mu.Unlock()
	l.group.Wait()
	return err
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.group.Go(func() { l.serve(client) })
	}
}

// serve connects a client with the target.
func (l *Link) serve(client net.Conn) {
	if !l.add(client) {
		return
	}
	defer l.remove(client)
	l.pass()
	server, err := net.Dial("tcp", l.target)
	if err != nil || !l.add(server) {
		return
	}
	defer l.remove(server)
	var answers sync.WaitGroup
	answers.Go(func() { l.copy(client, server) })
	l.copy(server, client)
	answers.Wait()
}

// add keeps a connection until it is removed. It ends one that the link lets not through.
func (l *Link) add(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.cut == Reset {
		_ = conn.Close()
		return false
	}
	l.conns[conn] = true
	return true
}

func (l *Link) remove(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = conn.Close()
	delete(l.conns, conn)
}

// pass waits while everything is held up.
func (l *Link) pass() {
	l.mu.Lock()
	healed := l.healed
	l.mu.Unlock()
	<-healed
}

// copy passes on the bytes of one side, and its end, which ends both.
func (l *Link) copy(to io.WriteCloser, from io.ReadCloser) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		l.pass()
		if n > 0 {
			_, writeErr := to.Write(buf[:n])
			err = errors.Join(err, writeErr)
		}
		if err != nil {
			_, _ = to.Close(), from.Close()
			return
		}
	}
}
