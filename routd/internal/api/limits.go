package api

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
	"arizuko/pkg/httpx"
)

const (
	// questionTimeout leaves gated, which waits 2 s, time to receive the answer.
	questionTimeout = 1600 * time.Millisecond
	// changeTimeout is below the 10 s of clients, and of a wait for the write lock.
	changeTimeout = 8 * time.Second
	// answerDelay is how long a handler may take to return after its context has ended.
	answerDelay = 100 * time.Millisecond
	// maxRequests of one kind are served at once, a body of at most 1 MiB each; others wait.
	maxRequests = 32
)

// handler answers a request.
type handler func(r *http.Request) (*answer, error)

// answer is a status and the body's value, nil for none.
type answer struct {
	status int
	body   any
}

// limits are those of one kind of request.
type limits struct {
	timeout time.Duration
	slots   chan struct{}
}

func newLimits(timeout time.Duration) *limits {
	return &limits{timeout: timeout, slots: make(chan struct{}, maxRequests)}
}

// result is what a handler returned.
type result struct {
	*answer
	err error
}

// wrap answers each request within the timeout, whether or not its handler returns in time. One that
// waits for the write lock then still makes its change; it keeps its slot until it returns.
func (l *limits) wrap(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), l.timeout-answerDelay)
		defer cancel()
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			httpx.Error(w, apierr.New(apierr.Unavailable, "%d requests are being answered: try again", maxRequests))
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
			httpx.Error(w, apierr.New(apierr.Unavailable, "no answer within %s; a change may still be made", l.timeout))
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
	case errors.Is(err, os.ErrDeadlineExceeded): // the deadline stays: the server reads what is left
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
func call(h handler, r *http.Request) (res result) {
	defer func() {
		if cause := recover(); cause != nil {
			res = result{err: fmt.Errorf("panic: %v\n%s", cause, debug.Stack())}
		}
	}()
	res.answer, res.err = h(r)
	return res
}

func (res *result) write(w http.ResponseWriter) {
	switch {
	case res.err != nil:
		httpx.Error(w, res.err)
	case res.body == nil:
		w.WriteHeader(res.status)
	default:
		httpx.JSON(w, res.status, res.body)
	}
}
