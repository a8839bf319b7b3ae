package adapter_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/adapter"
)

// The types of HTTP/2 frames, and codes of errors (RFC 9113).
const (
	dataFrame, headersFrame, resetFrame, settingsFrame, pingFrame, goAwayFrame = 0, 1, 3, 4, 6, 7
	endStream, endHeaders, ack                                                 = 1, 4, 1
	noError, internalError, refusedStream, cancelled                           = 0, 2, 7, 8
)

// peer is the server's end of a connection. It writes while it reads, as the client may do neither for the other's sake.
type peer struct {
	conn *tls.Conn
	out  chan []byte // frames; nil closes the connection
}

func newPeer(conn net.Conn, config *tls.Config) *peer {
	return &peer{conn: tls.Server(conn, config), out: make(chan []byte, 100)}
}

// send writes the frames until the connection is closed.
func (p *peer) send() {
	for frame := range p.out {
		if frame == nil {
			_ = p.conn.NetConn().Close() // never fails
			continue
		}
		_, _ = p.conn.Write(frame) // an error is the client's as well
	}
}

func (p *peer) end() { p.out <- nil }

func (p *peer) write(kind, flags byte, stream uint32, payload ...byte) {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind)) //nolint:gosec // a few bytes
	frame = append(frame, flags)
	frame = binary.BigEndian.AppendUint32(frame, stream)
	p.out <- append(frame, payload...)
}

// read returns the next frame; its error is that of the connection.
func (p *peer) read() (kind, flags byte, stream uint32, payload []byte, err error) {
	var header [9]byte
	if _, err = io.ReadFull(p.conn, header[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	payload = make([]byte, binary.BigEndian.Uint32(header[:4])>>8)
	_, err = io.ReadFull(p.conn, payload)
	return header[3], header[4], binary.BigEndian.Uint32(header[5:]), payload, err
}

func (p *peer) reset(stream uint32, code byte) { p.write(resetFrame, 0, stream, 0, 0, 0, code) }

// goAway says that the streams after last were not begun.
func (p *peer) goAway(last uint32, code byte) {
	p.write(goAwayFrame, 0, 0, append(binary.BigEndian.AppendUint32(nil, last), 0, 0, 0, code)...)
}

// answer answers with status 200.
func (p *peer) answer(stream uint32) { p.write(headersFrame, endHeaders|endStream, stream, 0x88) }

// network makes connections to a server that does with each whole request what serve says.
type network struct {
	handle  func(p *peer, stream uint32)
	conns   int // that were made
	most    int // of them
	server  *tls.Config
	clients *tls.Config
	wrap    func(net.Conn) net.Conn
	serving sync.WaitGroup
}

func newNetwork(t *testing.T, handle func(p *peer, stream uint32)) *network {
	s := httptest.NewUnstartedServer(nil)
	s.EnableHTTP2 = true
	s.StartTLS() // for its certificate
	s.Close()
	clients := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	clients.ServerName = "example.com"
	n := &network{handle: handle, most: 1, server: s.TLS, clients: clients, wrap: func(c net.Conn) net.Conn { return c }}
	t.Cleanup(n.serving.Wait)
	return n
}

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	if n.conns == n.most {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	n.conns++
	client, server := net.Pipe()
	n.serving.Go(func() {
		p := newPeer(server, n.server)
		n.serving.Go(p.send)
		p.serve(n.handle)
		p.end()
		close(p.out)
	})
	return n.wrap(client), nil
}

// serve handles requests until the connection ends.
func (p *peer) serve(handle func(p *peer, stream uint32)) {
	preface := make([]byte, 24)
	if _, err := io.ReadFull(p.conn, preface); err != nil {
		return
	}
	p.write(settingsFrame, 0, 0)
	for {
		kind, flags, stream, payload, err := p.read()
		switch {
		case err != nil:
			return
		case kind == settingsFrame && flags&ack == 0:
			p.write(settingsFrame, ack, 0)
		case kind == pingFrame && flags&ack == 0:
			p.write(pingFrame, ack, 0, payload...)
		case (kind == headersFrame || kind == dataFrame) && flags&endStream != 0:
			handle(p, stream)
		}
	}
}

// onceReadable hides that a body can be read twice, as that of an upload cannot.
type onceReadable struct{ io.Reader }

// call makes a call, whose body may be that of an upload.
func call(ctx context.Context, t *testing.T, c *http.Client, upload bool) error {
	t.Helper()
	var body io.Reader = strings.NewReader("hello")
	if upload {
		body = onceReadable{body}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://example.com/", body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err == nil {
		res.Body.Close()
	}
	return err
}

// A server that ends a connection says which requests it has not begun.
func TestTransport_HTTP2Refusal_IsUnsentUnlessBegun(t *testing.T) {
	for name, tt := range map[string]struct {
		handle func(p *peer, stream uint32)
		unsent bool
	}{
		"refused":              {func(p *peer, stream uint32) { p.reset(stream, refusedStream) }, true},
		"goaway before it":     {func(p *peer, stream uint32) { p.goAway(stream-2, noError); p.end() }, true},
		"goaway after it":      {func(p *peer, stream uint32) { p.goAway(stream, noError); p.end() }, false},
		"goaway with an error": {func(p *peer, stream uint32) { p.goAway(stream, internalError); p.end() }, false},
		"failed":               {func(p *peer, stream uint32) { p.reset(stream, internalError) }, false},
		"cancelled":            {func(p *peer, stream uint32) { p.reset(stream, cancelled) }, false},
		"closed":               {func(p *peer, _ uint32) { p.end() }, false},
		"never answered":       {func(*peer, uint32) {}, false},
	} {
		for _, upload := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " upload"}[upload], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork(t, func(p *peer, stream uint32) {
						if stream == 1 {
							p.answer(stream)
							return
						}
						tt.handle(p, stream)
					})
					c := adapter.Network{Dial: n.dial, TLS: n.clients}.CallClient()
					t.Cleanup(c.CloseIdleConnections)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // net/http repeats for one
					defer cancel()
					if err := call(ctx, t, c, false); err != nil {
						t.Fatal(err)
					}
					if err := call(ctx, t, c, upload); err == nil || errors.Is(err, adapter.ErrUnsent) != tt.unsent {
						t.Errorf("%v, want it unsent: %t", err, tt.unsent)
					}
				})
			})
		}
	}
}

// brokenConn fails to write once it is cut, before the reader notices.
type brokenConn struct {
	net.Conn
	cut *bool
}

func (c brokenConn) Write(p []byte) (int, error) {
	if *c.cut {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(p)
}

func TestTransport_ConnectionBrokenBeforeTheRequest_IsUnsent(t *testing.T) {
	for _, upload := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, func(p *peer, stream uint32) { p.answer(stream) })
			cut := false
			n.wrap = func(c net.Conn) net.Conn { return brokenConn{c, &cut} }
			c := adapter.Network{Dial: n.dial, TLS: n.clients}.CallClient()
			t.Cleanup(c.CloseIdleConnections)
			if err := call(t.Context(), t, c, false); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			cut = true
			if err := call(t.Context(), t, c, upload); !errors.Is(err, adapter.ErrUnsent) {
				t.Errorf("upload %t: %v", upload, err)
			}
		})
	}
}

// A connection over which nothing comes is closed after two halves of the silence that is allowed.
func TestTransport_DeadHTTP2Connection_IsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, func(p *peer, stream uint32) {
			if stream == 1 {
				p.answer(stream)
			}
		})
		n.most = 2
		var dead []*deadConn
		n.wrap = func(c net.Conn) net.Conn {
			dead = append(dead, &deadConn{Conn: c})
			return dead[len(dead)-1]
		}
		c := adapter.Network{Dial: n.dial, TLS: n.clients}.CallClient()
		t.Cleanup(c.CloseIdleConnections)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := call(ctx, t, c, false); err != nil {
			t.Fatal(err)
		}
		dead[0].cut.Store(true)
		began := time.Now()
		if err := call(ctx, t, c, false); err == nil || errors.Is(err, adapter.ErrUnsent) {
			t.Errorf("on a dead connection: %v", err)
		}
		if took := time.Since(began); took > time.Minute { // without pings the call ends after an hour
			t.Errorf("noticed after %v", took)
		}
		if err := call(ctx, t, c, false); err != nil || len(dead) != 2 {
			t.Errorf("then: %v, on connection %d", err, len(dead))
		}
	})
}

// deadConn loses what is written, once it is cut.
type deadConn struct {
	net.Conn
	cut atomic.Bool
}

func (c *deadConn) Write(p []byte) (int, error) {
	if c.cut.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}
