package httpx

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// maxDirectIdle is how many connections wait for the next request.
const maxDirectIdle = 4

// Direct makes a client one for short questions on the hot path, and returns it. Its requests must be safe to repeat:
// one on a connection that the daemon has closed meanwhile is sent again. A client of an https URL stays as it is.
func (c *Client) Direct() *Client {
	if t, ok := c.HTTP.Transport.(*http.Transport); ok && strings.HasPrefix(c.Base, "http://") {
		c.HTTP.Transport, c.HTTP.Timeout = &direct{dial: t.DialContext, idle: make(chan *directConn, maxDirectIdle)}, 0
	}
	return c
}

// direct is a transport in which the caller's goroutine writes the request and reads the answer. http.Transport has
// two goroutines for each connection, so that a question costs two more wake-ups in each direction.
type direct struct {
	dial Dial
	idle chan *directConn
}

type directConn struct {
	net.Conn
	host string
	r    *bufio.Reader
	w    *bufio.Writer
}

// errNoAnswer means that the connection has ended before the first byte of the answer.
var errNoAnswer = errors.New("connection ended before the answer")

// RoundTrip implements http.RoundTripper. The answer is read to the end, or up to the limit of a Client.
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), clientTimeout)
	defer cancel()
	for {
		c, reused, err := d.conn(ctx, req.URL.Host)
		if err != nil {
			return nil, err
		}
		res, reusable, err := c.exchange(ctx, req)
		if err == nil && reusable {
			d.keep(c)
			return res, nil
		}
		_ = c.Close() // it is of no further use
		if err == nil || !reused || !errors.Is(err, errNoAnswer) {
			return res, err
		}
		if req, err = again(req); err != nil {
			return nil, err
		}
	}
}

// again returns a request with its body unread.
func again(req *http.Request) (*http.Request, error) {
	next := *req
	if req.GetBody == nil {
		return &next, nil
	}
	var err error
	next.Body, err = req.GetBody()
	return &next, err
}

// conn returns an idle connection to a host, or a new one.
func (d *direct) conn(ctx context.Context, host string) (c *directConn, reused bool, err error) {
	for {
		select {
		case c := <-d.idle:
			if c.host == host {
				return c, true, nil
			}
			_ = c.Close()
			continue
		default:
		}
		conn, err := d.dial(ctx, "tcp", host)
		if err != nil {
			return nil, false, err
		}
		return &directConn{Conn: conn, host: host, r: bufio.NewReader(conn), w: bufio.NewWriter(conn)}, false, nil
	}
}

func (d *direct) keep(c *directConn) {
	select {
	case d.idle <- c:
	default:
		_ = c.Close()
	}
}

// CloseIdleConnections is called by http.Client's method of the same name.
func (d *direct) CloseIdleConnections() {
	for {
		select {
		case c := <-d.idle:
			_ = c.Close()
		default:
			return
		}
	}
}

// exchange writes a request and reads its answer. It reports whether the connection can be used again.
func (c *directConn) exchange(ctx context.Context, req *http.Request) (res *http.Response, reusable bool, err error) {
	deadline, _ := ctx.Deadline() // the zero time is none
	if err := c.SetDeadline(deadline); err != nil {
		return nil, false, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	res, err = c.send(req)
	running := stop()
	switch {
	case err == nil:
		return res, running && !res.Close, nil
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, false, context.DeadlineExceeded
	}
	return nil, false, err
}

func (c *directConn) send(req *http.Request) (*http.Response, error) {
	err := req.Write(c.w)
	if err == nil {
		err = c.w.Flush()
	}
	if err == nil {
		_, err = c.r.Peek(1)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	res, err := http.ReadResponse(c.r, req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	res.Close = res.Close || len(body) > maxAnswer // the rest is not read
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}
