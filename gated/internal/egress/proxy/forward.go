package proxy

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"arizuko/pkg/egress"
)

// send sends a request that was decided about. The error is of a request that was not sent.
func (x *exchange) send(w http.ResponseWriter, r *http.Request) error {
	if err := x.loadSecrets(); err != nil {
		return err
	}
	if x.refresh != nil {
		release, err := x.holdRefresh(r)
		if err != nil {
			return err
		}
		defer release()
		// A server that has replaced a token has to be heard, whether or not the agent waits.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), refreshTimeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	x.receipt.State = egress.Sending
	if x.receipt.ID != 0 || !isSafe(r) || r.Header.Get("Upgrade") != "" {
		if err := x.put(r.Context()); err != nil {
			return err
		}
	}
	_ = http.NewResponseController(w).EnableFullDuplex() // a server may answer before it has the whole body
	if r.Header.Get("Upgrade") != "" {                   // the server doesn't end it
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(x.p.tunnels, cancel)()
		r = r.WithContext(ctx)
	}
	trace := &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	proxy := httputil.ReverseProxy{
		Rewrite: x.rewrite, ModifyResponse: x.change, Transport: x.p.transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { x.fail(w, err) },
		ErrorLog:     log.New(io.Discard, "", 0), // the receipt has what went wrong, without secrets
	}
	proxy.ServeHTTP(finalOnly{w}, r)
	if x.receipt.State == egress.Sending {
		x.receipt.State = egress.Sent
	}
	return nil
}

// isSafe reports whether a request only reads, by its method.
func isSafe(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

// rewrite makes the request that is sent of the one that was received.
func (x *exchange) rewrite(pr *httputil.ProxyRequest) {
	out, in := pr.Out, pr.In
	out.URL = &url.URL{Scheme: map[bool]string{false: "http", true: "https"}[x.tls], Host: x.authority(),
		Path: in.URL.Path, RawPath: in.URL.RawPath, RawQuery: in.URL.RawQuery, ForceQuery: in.URL.ForceQuery}
	out.Host = x.authority()
	// With these names, net/http would send a request a second time if its connection breaks, and so it would one whose
	// method has no effects, unless it has a body that can't be read again.
	if x.receipt.ID != 0 && out.Body == nil && isSafe(in) {
		out.Body, out.GetBody = io.NopCloser(strings.NewReader("")), nil
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, has := out.Header[name]; has {
			delete(out.Header, name)
			out.Header[strings.ToLower(name)] = values
		}
	}
	x.inject(out)
}

// change is an httputil.ReverseProxy's ModifyResponse: it hides the secrets that the request had.
func (x *exchange) change(res *http.Response) error {
	x.receipt.Status = res.StatusCode
	if up, ok := res.Body.(io.ReadWriteCloser); ok && res.StatusCode == http.StatusSwitchingProtocols {
		x.scrubHeaders(res.Header)
		res.Body = &upgraded{counted{x.scrubBody(up, true, func() {}), &x.in}, up, &x.out}
		return nil
	}
	if len(x.secrets) > 0 {
		if err := decode(res); err != nil {
			return err
		}
		if x.refresh != nil && res.StatusCode/100 == 2 {
			if err := x.finishRefresh(res); err != nil {
				return err
			}
		}
		x.scrubHeaders(res.Header)
		if res.Request.Method != http.MethodHead {
			res.Header.Del("Content-Length") // a token may be longer than what it stands for
			res.ContentLength = -1
		}
		res.Body = x.scrubBody(res.Body, false, func() { x.scrubHeaders(res.Trailer) })
	}
	res.Body = &counted{res.Body, &x.in}
	return nil
}

// decode makes a body readable that a server has compressed although it was asked not to.
func decode(res *http.Response) error {
	encoding := strings.ToLower(res.Header.Get("Content-Encoding"))
	if encoding == "" || encoding == "identity" || res.ContentLength == 0 || res.Request.Method == http.MethodHead {
		return nil
	}
	unzipped, err := gzip.NewReader(res.Body)
	if encoding != "gzip" || err != nil {
		return fmt.Errorf("the answer is compressed (%.20q), and cannot be searched for the secret", encoding)
	}
	res.Header.Del("Content-Encoding")
	res.Body = struct {
		io.Reader
		io.Closer
	}{unzipped, res.Body}
	return nil
}

// upload is a body as it arrives, which fails if nothing does.
type upload struct {
	counted
	rc *http.ResponseController
}

func (u *upload) Read(b []byte) (int, error) {
	_ = u.rc.SetReadDeadline(time.Now().Add(readTimeout))
	n, err := u.counted.Read(b)
	if err != nil {
		_ = u.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// counted is a body whose bytes are counted.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// upgraded is a connection after an upgrade.
type upgraded struct {
	counted
	to  io.Writer
	out *atomic.Int64
}

func (u *upgraded) Write(b []byte) (int, error) {
	n, err := u.to.Write(b)
	u.out.Add(int64(n))
	return n, err
}

// finalOnly passes on no informational responses, in which a server might repeat a secret. A client that waits for 100
// gets it from the proxy's server.
type finalOnly struct{ http.ResponseWriter }

func (f finalOnly) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		f.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for http.ResponseController.
func (f finalOnly) Unwrap() http.ResponseWriter { return f.ResponseWriter }
