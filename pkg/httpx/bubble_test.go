package httpx

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// ServeInBubble serves a handler in memory, for a bubble of testing/synctest: there no machine is too slow for a limit of
// time. The server ends with the test.
func ServeInBubble(t *testing.T, handler http.Handler) Dial {
	t.Helper()
	l := &memory{accepted: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return l.dial
}

// memory is a listener of connections within the process.
type memory struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (l *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.accepted <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *memory) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *memory) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// recorded is a connection whose writes are kept.
type recorded struct {
	net.Conn
	wire *bytes.Buffer
}

func (r recorded) Write(p []byte) (int, error) {
	r.wire.Write(p)
	return r.Conn.Write(p)
}

func newReader(p []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(p)) }
