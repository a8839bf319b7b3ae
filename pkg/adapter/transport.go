package adapter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/msg"
)

const (
	// ConnectTimeout bounds each step of an attempt to connect. It is above the 5 s that a resolver loses
	// to a name server that does not answer.
	ConnectTimeout = 8 * time.Second
	// callTimeout bounds a call whose context has no deadline.
	callTimeout = 10 * time.Second
	// callSilence and listenSilence are how long a connection may be dead before that is noticed. A call
	// on a connection that is given up may have been carried out; a listener only connects again.
	callSilence   = 30 * time.Second
	listenSilence = 10 * time.Second
	// maxIdleConns is how many unused connections to a host are kept.
	maxIdleConns = maxSends
	idleTimeout  = 90 * time.Second
	// downloadHeaderTimeout bounds the wait for the first byte of a file, so that time is left to retry.
	downloadHeaderTimeout = 15 * time.Second
)

// Network makes the connections of an adapter. The zero value is the machine's network; tests have one in
// memory.
type Network struct {
	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil: by the machine
	TLS  *tls.Config                                                       // of clients; nil for the default
}

// NewCallClient makes a client of the machine's network for calls that send, search and download.
func NewCallClient() *http.Client { return Network{}.CallClient() }

// NewListenClient makes a client of the machine's network for the calls of a Listener.
func NewListenClient() *http.Client { return Network{}.ListenClient() }

// CallClient makes the client for calls that send, search and download.
func (n Network) CallClient() *http.Client { return n.client(callSilence, callTimeout) }

// ListenClient makes the client for the calls of a Listener. Its connections are not shared with
// those of a client for calls, and a dead one is noticed sooner.
func (n Network) ListenClient() *http.Client { return n.client(listenSilence, ConnectTimeout) }

// DialListener is the dial function of a Listener's websocket.
func (n Network) DialListener(ctx context.Context, network, addr string) (net.Conn, error) {
	return n.dial(listenSilence)(ctx, network, addr)
}

func (n Network) client(silence, timeout time.Duration) *http.Client {
	return &http.Client{Transport: &transport{timeout: timeout, base: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         n.dial(silence),
		TLSClientConfig:     n.TLS.Clone(), // a transport changes its own
		TLSHandshakeTimeout: ConnectTimeout,
		MaxIdleConnsPerHost: maxIdleConns,
		IdleConnTimeout:     idleTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: silence / 2, PingTimeout: silence / 2,
			WriteByteTimeout: silence},
	}}}
}

func (n Network) dial(silence time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	if n.Dial != nil {
		return n.Dial
	}
	return dialer(silence).DialContext
}

// dialer makes connections that fail once the other side has acknowledged nothing for a while.
func dialer(silence time.Duration) *net.Dialer {
	const probes = 3
	return &net.Dialer{
		Timeout: ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: silence / 2, Interval: silence / 2 / probes, Count: probes,
		},
		// For data that is under way, for which no keep-alive is sent.
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			control := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
			})
			return errors.Join(control, err)
		},
	}
}

// transport gives every call a deadline, and wraps the error of one that was not sent, or that the server has
// refused to begin, in ErrUnsent.
type transport struct {
	base    *http.Transport
	timeout time.Duration // of a call without a deadline
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := req.Context(), func() {}
	if _, bounded := ctx.Deadline(); !bounded {
		ctx, cancel = context.WithTimeout(ctx, t.timeout)
	}
	var w writing
	res, err := t.base.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, w.trace())))
	if err != nil {
		ended := ctx.Err() != nil
		cancel()
		unsent := !w.mayHaveBegun(ended) || neverBegun(err)
		if unsent && req.Response == nil { // not after a redirect, whose first request was answered
			err = fmt.Errorf("%w: %w", ErrUnsent, err)
		}
		return nil, err
	}
	res.Body = &body{ReadCloser: res.Body, cancel: cancel}
	return res, nil
}

// writing is how far the last attempt to send a request has come. The base makes another one only if the server has
// not begun to carry out the one before.
type writing struct {
	connected bool        // there is a connection
	wrote     atomic.Bool // the headers are written, and perhaps the body
}

// trace records the attempts. WroteHeaders would not do: it also runs after an error.
func (w *writing) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn:      func(string) { w.begin(false) },
		GotConn:      func(httptrace.GotConnInfo) { w.begin(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) { w.wrote.Store(true) },
	}
}

func (w *writing) begin(connected bool) {
	w.connected = connected
	w.wrote.Store(false)
}

// mayHaveBegun reports whether the server may have received the request. ended means that the call's context has ended:
// the base does not wait then for the goroutine that writes, which may write still.
func (w *writing) mayHaveBegun(ended bool) bool {
	return w.connected && (ended || w.wrote.Load())
}

// refusedStream is HTTP/2's REFUSED_STREAM (RFC 9113, section 8.7).
const refusedStream = 0x7

// streamError is an error of one request on an HTTP/2 connection. net/http converts its own to any type with these
// fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// Error implements error.
func (e streamError) Error() string { return fmt.Sprintf("stream %d: code %d", e.StreamID, e.Code) }

// neverBegun reports whether a server has answered that it did not begin to carry out a request: with REFUSED_STREAM,
// or with a GOAWAY for the streams before it. The base repeats such a request, but not for ever, and not one whose body
// can be read only once: its error for that is a text.
func neverBegun(err error) bool {
	if refused := (streamError{}); errors.As(err, &refused) {
		return refused.Code == refusedStream
	}
	text := err.Error()
	return strings.HasPrefix(text, "http2: Transport: cannot retry err [") &&
		(strings.Contains(text, "; REFUSED_STREAM; received from peer") ||
			strings.Contains(text, "graceful shutdown GOAWAY"))
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// body ends the call's context when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// sameHost follows redirects on a file's own server: another one, which the first has named, may be of this machine's
// network.
func sameHost(req *http.Request, via []*http.Request) error {
	const maxRedirects = 5
	if first := via[0].URL; len(via) > maxRedirects || req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// Download sends a request for a file and writes the answer to w. It follows no redirect to another host. check, unless
// nil, may refuse an answer, of whatever status. The error for a status that another try does not change is a permanent
// *Failure. No error contains the URL.
func Download(c *http.Client, req *http.Request, w io.Writer, check func(*http.Response) error) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	late := time.AfterFunc(downloadHeaderTimeout, cancel)
	client := *c
	if client.CheckRedirect == nil {
		client.CheckRedirect = sameHost
	}
	res, err := client.Do(req.WithContext(ctx))
	if !late.Stop() && err != nil && req.Context().Err() == nil {
		err = errors.New("the file server does not answer")
	}
	if err != nil {
		return TransportError(err)
	}
	defer res.Body.Close()
	if check != nil {
		if err := check(res); err != nil {
			return err
		}
	}
	if res.StatusCode != http.StatusOK {
		return &Failure{Class: downloadClass(res.StatusCode),
			Err: fmt.Errorf("the file server answered %s", res.Status)}
	}
	_, err = io.Copy(w, res.Body)
	return err
}

func downloadClass(status int) msg.ErrorClass {
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests,
		status >= http.StatusInternalServerError:
		return msg.Transient
	}
	return msg.Permanent
}

// TransportError removes the URL, which may hold a token, from an error of http.Client.Do.
func TransportError(err error) error {
	var where *url.Error
	if errors.As(err, &where) {
		return where.Err
	}
	return err
}
