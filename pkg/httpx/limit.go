package httpx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"arizuko/pkg/apierr"
)

const (
	// answerDelay is how long a handler may take to return after its context has ended.
	answerDelay = 100 * time.Millisecond
	// maxRequests of one kind are served at once, a body of at most MaxBody each; others wait.
	maxRequests = 32
)

// Handler answers a request.
type Handler func(r *http.Request) (*Answer, error)

// Answer is a status and the body's value, nil for none.
type Answer struct {
	Status int
	Body   any
}

// Limit bounds how many requests of one kind are served at once, and for how long.
type Limit struct {
	timeout time.Duration
	slots   chan struct{}
}

// NewLimit makes a limit whose requests are answered within the timeout.
func NewLimit(timeout time.Duration) *Limit {
	return &Limit{timeout: timeout, slots: make(chan struct{}, maxRequests)}
}

// result is the answer of a handler.
type result struct {
	*Answer
	err error
}

// Wrap answers each request within the timeout, whether or not its handler returns in time. One that
// waits for the write lock then still makes its change; it keeps its slot until it returns.
func (l *Limit) Wrap(h Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), l.timeout-answerDelay)
		defer cancel()
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			Error(w, apierr.New(apierr.Unavailable, "%d requests are being answered: try again", maxRequests))
			return
		}
		r = r.WithContext(ctx)
		receive(w, r, start.Add(l.timeout-answerDelay))

		done := make(chan result, 1)
		go func() {
			defer func() { <-l.slots }()
			done <- call(h, r)
		}()
		timer := time.NewTimer(time.Until(start.Add(l.timeout)))
		defer timer.Stop()
		select {
		case res := <-done:
			res.write(w)
		case <-timer.C:
			Error(w, apierr.New(apierr.Unavailable, "no answer within %s; a change may still be made", l.timeout))
		}
	}
}

// receive reads the body until a time, so that a slow client holds a slot no longer. The handler finds
// an error of the client's in the body.
func receive(w http.ResponseWriter, r *http.Request, until time.Time) {
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(until) // a test's recorder has none
	body, err := io.ReadAll(r.Body)
	var rest io.Reader = strings.NewReader("")
	switch {
	case err == nil:
		_ = connection.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded): // the deadline stays: the server reads the rest
		err = errors.New("it did not arrive in time")
		fallthrough
	default:
		rest = failingReader{err}
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), rest))
}

// failingReader is the end of a body that could not be read.
type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// call returns a panic as an error: the goroutine is not the server's.
func call(h Handler, r *http.Request) (res result) {
	defer func() {
		if cause := recover(); cause != nil {
			res = result{err: fmt.Errorf("panic: %v\n%s", cause, debug.Stack())}
		}
	}()
	res.Answer, res.err = h(r)
	return res
}

func (res *result) write(w http.ResponseWriter) {
	switch {
	case res.err != nil:
		Error(w, res.err)
	case res.Body == nil:
		w.WriteHeader(res.Status)
	default:
		JSON(w, res.Status, res.Body)
	}
}
