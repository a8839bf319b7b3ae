package adapter

import (
	"fmt"
	"net/http"
	"time"
)

// Ceiling is a limit as a platform counts it: at most so many calls in any time, by when they arrive there. Permits of
// a Pace say when calls should begin: those that a slow disk or a busy machine holds up begin together.
type Ceiling struct {
	in    time.Duration
	slots chan time.Time // from when each can be used, the soonest first
}

// NewCeiling makes a ceiling of so many calls in a time.
func NewCeiling(calls int, in time.Duration) *Ceiling {
	c := &Ceiling{in, make(chan time.Time, calls)}
	for range calls {
		c.slots <- time.Time{}
	}
	return c
}

// Keep makes a client of another one whose calls, together with those of the ceiling's other clients, stay below it,
// however long each is on its way: a call counts from its begin until the time is over after its answer. Further calls
// wait; one that waits longer than its context has not been sent.
func (c *Ceiling) Keep(client *http.Client) *http.Client {
	kept := *client
	kept.Transport = below{client.Transport, c}
	return &kept
}

// below is a transport below a ceiling.
type below struct {
	http.RoundTripper
	ceiling *Ceiling
}

// RoundTrip implements http.RoundTripper.
func (b below) RoundTrip(r *http.Request) (*http.Response, error) {
	slots := b.ceiling.slots
	select {
	case free := <-slots:
		if Pause(r.Context(), time.Until(free)); r.Context().Err() == nil {
			defer func() { slots <- time.Now().Add(b.ceiling.in) }()
			return b.RoundTripper.RoundTrip(r)
		}
		slots <- free
	case <-r.Context().Done():
	}
	if r.Body != nil {
		_ = r.Body.Close() // a transport closes it in any case
	}
	return nil, fmt.Errorf("%w: too many calls at once: %w", ErrUnsent, r.Context().Err())
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (b below) CloseIdleConnections() {
	if t, ok := b.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
