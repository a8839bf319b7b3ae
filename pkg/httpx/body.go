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
	// minUploadRate is how slow an upload may be, in bytes a second: the worst mobile networks have twice as much.
	minUploadRate = 10_000
	// leftoverTimeout is how long the rest of a body is read after the answer, so that a client that
	// still sends gets to read the answer, even one that stalls for a moment.
	leftoverTimeout = 5 * time.Second
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
		b := &body{ReadCloser: r.Body, control: control, timeout: timeout,
			late: fmt.Sprintf("body: not received within %s", timeout)}
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
	control *http.ResponseController
	conn    *conn // nil if the listener is not of this package
	timeout time.Duration
	late    string // the error once the deadline has passed
	ended   bool   // read to the end

	// Of an upload: when it began, zero for other bodies, the bytes since, and the error that has ended it.
	began time.Time
	read  int64
	err   error
}

// Read returns a bad_request when the deadline has passed.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if !b.began.IsZero() {
		b.extend()
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		b.ended = true
		if b.conn != nil {
			b.conn.setWaiting(false)
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = apierr.New(apierr.BadRequest, "%s", b.late)
	}
	if !b.began.IsZero() {
		b.err = err
	}
	return n, err
}

// extend moves the deadlines of an upload. Its answer has a minute after it.
func (b *body) extend() {
	deadline := time.Now().Add(b.timeout)
	slowest := b.began.Add(b.timeout + time.Duration(b.read)*time.Second/minUploadRate)
	if slowest.Before(deadline) {
		deadline = slowest
	}
	_ = b.control.SetReadDeadline(deadline)
	_ = b.control.SetWriteDeadline(deadline.Add(answerTimeout))
}

// limitedBody is a body with a maximum of bytes.
type limitedBody struct {
	io.ReadCloser
	whole io.ReadCloser
	limit int64
}

func limited(w http.ResponseWriter, whole io.ReadCloser, limit int64) *limitedBody {
	return &limitedBody{http.MaxBytesReader(w, whole, limit), whole, limit}
}

// Allow lets a request's body have up to limit bytes, in place of MaxBody. Call it before the body is read.
func Allow(w http.ResponseWriter, r *http.Request, limit int64) {
	whole := r.Body
	if former, ok := whole.(*limitedBody); ok {
		whole = former.whole
	}
	r.Body = limited(w, whole, limit)
}

// Upload is Allow for a body that may take longer than others: it ends with an error when nothing comes for 30 s, or
// less than 10 KB/s on the whole.
func Upload(w http.ResponseWriter, r *http.Request, limit int64) {
	Allow(w, r, limit)
	if b, ok := r.Body.(*limitedBody).whole.(*body); ok {
		b.began = time.Now()
		b.late = fmt.Sprintf("body: nothing received for %s, or less than %d KB/s", b.timeout, minUploadRate/1000)
	}
}

// Drain reads the rest of a request's body, so that a client that is still sending reads the answer: browsers
// take a connection that is closed meanwhile for one that is broken. Beyond its limit it reads as much again.
func Drain(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // until its limit, or its deadline
	if body, ok := r.Body.(*limitedBody); ok {
		_, _ = io.CopyN(io.Discard, body.whole, body.limit)
	}
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
