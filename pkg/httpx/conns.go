package httpx

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	// maxConns bounds the memory that connections take, about 20 KB each.
	maxConns = 1024
	// minConns are enough for the other daemons, an operator and a health check.
	minConns = 16
	// connsShare is the part of the process's files that the connections of one listener may be.
	connsShare = 4
	// reportInterval bounds the log lines about too many connections.
	reportInterval = time.Minute
)

// MaxConns returns how many connections a server keeps open: a quarter of the files that the
// process may open (RLIMIT_NOFILE), at least 16 and at most 1024.
func MaxConns() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return minConns
	}
	return int(min(max(limit.Cur/connsShare, minConns), maxConns))
}

// conns is a listener that bounds its open connections. At the limit, a new connection replaces the
// one that has waited longest for its client: for a request, or for the rest of a body. Clients that
// hold connections open and send nothing thus do not keep others out.
type conns struct {
	net.Listener
	log *slog.Logger
	max func() int

	mu       sync.Mutex
	open     map[*conn]time.Time // since when each waits for its client, zero while a handler works on a request
	reported time.Time
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	conns *conns
}

// Accept implements net.Listener.
func (l *conns) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			outOfFiles := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
			if outOfFiles && l.closeOldest() {
				continue
			}
			return nil, err
		}
		c := &conn{Conn: accepted, conns: l}
		if l.admit(c) {
			return c, nil
		}
		_ = accepted.Close() // every connection is in use, there is nothing to say to this one
	}
}

// Close implements net.Listener. The address is free when it returns, even if a child process is being started: until
// that runs its program, it has the socket, too.
func (l *conns) Close() error {
	if tcp, ok := l.Listener.(*net.TCPListener); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RD) })
		}
	}
	return l.Listener.Close()
}

// admit counts a new connection. It reports false if all others are in use.
func (l *conns) admit(c *conn) bool {
	for limit := l.max(); ; {
		l.mu.Lock()
		if len(l.open) < limit {
			l.open[c] = time.Now()
			l.mu.Unlock()
			return true
		}
		l.report(limit)
		l.mu.Unlock()
		if !l.closeOldest() {
			return false
		}
	}
}

// report logs that the limit is reached; l is locked.
func (l *conns) report(limit int) {
	if now := time.Now(); now.Sub(l.reported) >= reportInterval {
		l.reported = now
		l.log.Warn("too many connections, closing the oldest ones that wait for their clients", "addr",
			l.Addr().String(), "count", limit)
	}
}

// closeOldest closes the connection that has waited longest, and reports whether there was one.
func (l *conns) closeOldest() bool {
	var oldest *conn
	l.mu.Lock()
	for c, since := range l.open {
		if !since.IsZero() && (oldest == nil || since.Before(l.open[oldest])) {
			oldest = c
		}
	}
	l.mu.Unlock()
	if oldest == nil {
		return false
	}
	_ = oldest.Close()
	return true
}

// Close implements net.Conn. It may be called more than once.
func (c *conn) Close() error {
	c.conns.mu.Lock()
	delete(c.conns.open, c)
	c.conns.mu.Unlock()
	return c.Conn.Close()
}

// ReadFrom implements io.ReaderFrom, so that files are sent without a copy where the connection can.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if to, ok := c.Conn.(io.ReaderFrom); ok {
		return to.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

// setWaiting records whether the connection waits for its client.
func (c *conn) setWaiting(waiting bool) {
	l := c.conns
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open {
		return
	}
	l.open[c] = time.Time{}
	if waiting {
		l.open[c] = time.Now()
	}
}

// stateChanged is an http.Server's ConnState.
func stateChanged(nc net.Conn, state http.ConnState) {
	if c, ok := nc.(*conn); ok && state != http.StateNew && state != http.StateClosed {
		c.setWaiting(state == http.StateIdle)
	}
}

type connKey struct{}

// withConn is an http.Server's ConnContext.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}
