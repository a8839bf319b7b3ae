package httpx

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// minUploadRate is how slow an upload may be, in bytes a second: the worst mobile networks have twice as much.
const minUploadRate = 10_000

// limitedBody is a body that a router has limited.
type limitedBody struct {
	io.ReadCloser
	whole io.ReadCloser
}

// Upload lets a request's body have up to limit bytes, in place of MaxBody, and take longer than others: it
// ends with an error when nothing comes for 30 s, or less than 10 KB/s on the whole. The answer has
// another minute after it. Call it before the body is read.
func Upload(w http.ResponseWriter, r *http.Request, limit int64) {
	whole := r.Body
	if limited, ok := whole.(*limitedBody); ok {
		whole = limited.whole
	}
	steady := &steadyBody{ReadCloser: whole, control: http.NewResponseController(w), began: time.Now(),
		stall: bodyTimeout}
	if b, ok := whole.(*body); ok {
		steady.stall = b.timeout
		b.late = fmt.Sprintf("body: nothing received for %s, or less than %d KB/s", b.timeout, minUploadRate/1000)
	}
	r.Body = &uploadBody{ReadCloser: http.MaxBytesReader(w, steady, limit), steady: steady, limit: limit}
}

// uploadBody is a body that Upload has limited.
type uploadBody struct {
	io.ReadCloser
	steady *steadyBody // without the limit
	limit  int64
}

// steadyBody moves the deadlines of its connection while it is received.
type steadyBody struct {
	io.ReadCloser
	control *http.ResponseController
	began   time.Time
	read    int64
	stall   time.Duration // without a byte
	err     error         // of the end
}

func (b *steadyBody) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	now := time.Now()
	slowest := b.began.Add(b.stall + time.Duration(b.read)*time.Second/minUploadRate)
	deadline := now.Add(b.stall)
	if slowest.Before(deadline) {
		deadline = slowest
	}
	_ = b.control.SetReadDeadline(deadline) // a test's recorder has none
	_ = b.control.SetWriteDeadline(deadline.Add(answerTimeout))
	n, b.err = b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, b.err
}

// Drain reads the rest of a request's body, so that a client that is still sending reads the answer: browsers
// take a connection that is closed meanwhile for one that is broken. Beyond its limit it reads as much again.
func Drain(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // until its limit, or its deadline
	if body, ok := r.Body.(*uploadBody); ok {
		_, _ = io.CopyN(io.Discard, body.steady, body.limit)
	}
}
