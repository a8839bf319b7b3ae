package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
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

// NewCallClient makes the client for calls that send, search and download.
func NewCallClient() *http.Client { return newHTTPClient(callSilence, callTimeout) }

// NewListenClient makes the client for the calls of a Listener. Its connections are not shared with
// those of a client for calls, and a dead one is noticed sooner.
func NewListenClient() *http.Client { return newHTTPClient(listenSilence, ConnectTimeout) }

// DialListener is the dial function of a Listener's websocket.
func DialListener(ctx context.Context, network, addr string) (net.Conn, error) {
	return dialer(listenSilence).DialContext(ctx, network, addr)
}

func newHTTPClient(silence, timeout time.Duration) *http.Client {
	return &http.Client{Transport: &transport{timeout: timeout, base: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer(silence).DialContext,
		TLSHandshakeTimeout: ConnectTimeout,
		MaxIdleConnsPerHost: maxIdleConns,
		IdleConnTimeout:     idleTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: silence / 2, PingTimeout: silence / 2, WriteByteTimeout: silence},
	}}}
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

// transport gives every call a deadline, and wraps the error of one for which there was no connection
// in ErrUnsent.
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
	// When WroteHeaders runs is not ordered with a call that ends early. GotConn has run before anything
	// is written, and a retry by the base, which begins with GetConn, means that nothing was.
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { connected = false },
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})
	res, err := t.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		if !connected && req.Response == nil { // not after a redirect, whose first request was answered
			err = fmt.Errorf("%w: %w", ErrUnsent, err)
		}
		return nil, err
	}
	res.Body = &body{ReadCloser: res.Body, cancel: cancel}
	return res, nil
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

// Download sends a request for a file and writes the answer to w. check, unless nil, may refuse a
// successful answer. The error for a status that another try does not change is a permanent *Failure.
// No error contains the URL.
func Download(c *http.Client, req *http.Request, w io.Writer, check func(*http.Response) error) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	late := time.AfterFunc(downloadHeaderTimeout, cancel)
	res, err := c.Do(req.WithContext(ctx))
	if !late.Stop() && err != nil && req.Context().Err() == nil {
		err = errors.New("the file server does not answer")
	}
	if err != nil {
		return TransportError(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return &Failure{Class: downloadClass(res.StatusCode), Err: fmt.Errorf("the file server answered %s", res.Status)}
	}
	if check != nil {
		if err := check(res); err != nil {
			return err
		}
	}
	_, err = io.Copy(w, res.Body)
	return err
}

func downloadClass(status int) msg.ErrorClass {
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
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
