package httpx

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"arizuko/pkg/apierr"
)

const (
	// bodyTimeout is enough for MaxBody over a slow link, 35 KB/s.
	bodyTimeout = 30 * time.Second
	// leftoverTimeout is how long the rest of a body is read after the answer, so that a client that
	// still sends gets to read the answer.
	leftoverTimeout = 500 * time.Millisecond
)

// timed gives request bodies a deadline. A request that is answered before its body was read to the
// end is the last one of its connection: the server does not wait for the rest.
func timed(next http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		b := &body{ReadCloser: r.Body, timeout: timeout, late: fmt.Sprintf("body: not received within %s", timeout)}
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			b.conn = c
			c.setWaiting(true)
		}
		// The server removes the deadline when the body has ended. It fails only with a connection
		// that is closed already.
		_ = control.SetReadDeadline(time.Now().Add(timeout))
		r.Body = b
		next.ServeHTTP(&unreadCloser{ResponseWriter: w, body: b}, r)
		if !b.ended {
			_ = control.SetReadDeadline(time.Now().Add(min(timeout, leftoverTimeout)))
		}
	})
}

// body is a request's body.
type body struct {
	io.ReadCloser
	conn    *conn // nil if the listener is not of this package
	timeout time.Duration
	late    string // the error once the deadline has passed
	ended   bool   // read to the end
}

// Read returns a bad_request when the deadline has passed.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.ended = true
		if b.conn != nil {
			b.conn.setWaiting(false)
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = apierr.New(apierr.BadRequest, "%s", b.late)
	}
	return n, err
}

// unreadCloser announces that the connection is closed if the body was not read to the end.
type unreadCloser struct {
	http.ResponseWriter
	body    *body
	started bool
}

func (w *unreadCloser) WriteHeader(status int) {
	w.announce()
	w.ResponseWriter.WriteHeader(status)
}

func (w *unreadCloser) Write(p []byte) (int, error) {
	w.announce()
	return w.ResponseWriter.Write(p)
}

func (w *unreadCloser) announce() {
	if !w.started && !w.body.ended {
		w.Header().Set("Connection", "close")
	}
	w.started = true
}

// Unwrap is for http.ResponseController.
func (w *unreadCloser) Unwrap() http.ResponseWriter { return w.ResponseWriter }
