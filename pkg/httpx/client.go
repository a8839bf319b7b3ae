package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"arizuko/pkg/apierr"
)

const (
	clientTimeout = 10 * time.Second
	dialTimeout   = 2 * time.Second
	clientIdle    = 90 * time.Second
	// maxAnswer bounds what a client reads of an answer, in bytes.
	maxAnswer = 8 << 20
)

// Client calls one other daemon. It is safe for concurrent use and keeps connections alive.
type Client struct {
	Base   string // URL without a trailing slash
	Secret string // bearer secret, none is sent if empty
	HTTP   *http.Client
}

// NewClient returns a client with a timeout of 10 s per call. It ignores proxies and follows no
// redirects, so that the secret is sent to Base only.
func NewClient(base, secret string) *Client {
	return &Client{Base: base, Secret: secret, HTTP: &http.Client{
		Timeout: clientTimeout,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     clientIdle,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Dial makes a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// DialWith makes new connections of the client by dial, which gets the address in Base.
func (c *Client) DialWith(dial Dial) {
	switch t := c.HTTP.Transport.(type) {
	case *http.Transport:
		t.DialContext = dial
	case *direct:
		t.dial = dial
	}
}

// Raw, as the out of Do, receives an answer as it is.
type Raw []byte

// Do sends in as JSON, unless nil, and decodes the answer into out, unless nil. Without out the answer must be JSON too, or
// empty. Every error has a kind: the one the daemon answered with, unavailable if it does not answer in time, internal if
// the answer cannot be decoded. IsAnswer and IsForeign say who made the error.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	req, err := c.request(ctx, method, path, in)
	if err != nil {
		return apierr.New(apierr.Internal, "%s %s%s: %w", method, c.Base, path, err)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return apierr.New(apierr.Unavailable, "%s does not answer: %w", c.Base, err)
	}
	defer res.Body.Close()
	// Read to the end, else the connection cannot be reused.
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return apierr.New(apierr.Unavailable, "read the answer of %s: %w", c.Base, err)
	case len(body) > maxAnswer:
		return apierr.New(apierr.Internal, "%w", foreignError{fmt.Errorf("%s answered with more than %d bytes", c.Base, maxAnswer)})
	case res.StatusCode < 200 || res.StatusCode > 299:
		return c.refused(res.StatusCode, body)
	case out == nil && (len(body) == 0 || json.Valid(body)):
		return nil
	case out == nil:
		return apierr.New(apierr.Internal, "%w", foreignError{fmt.Errorf("%s%s answered %d with what is no JSON", c.Base, path, res.StatusCode)})
	}
	if raw, ok := out.(*Raw); ok {
		*raw = body
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return apierr.New(apierr.Internal, "%w", foreignError{fmt.Errorf("decode the answer of %s%s: %w", c.Base, path, err)})
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Secret != "" {
		req.Header.Set("Authorization", "Bearer "+c.Secret)
	}
	setBy(req)
	return req, nil
}

// refused returns the error of an answer outside 2xx. The status decides the kind: the body may
// come from a proxy, or from a version that knows more kinds.
func (c *Client) refused(status int, body []byte) error {
	kind := apierr.KindOfStatus(status)
	var answer errorBody
	if err := json.Unmarshal(body, &answer); err == nil && answer.Error.Kind != "" && answer.Error.Message != "" {
		return apierr.New(kind, "%w", answeredError(answer.Error.Message))
	}
	excerpt := strings.TrimSpace(string(body[:min(len(body), 200)]))
	return apierr.New(kind, "%w", foreignError{fmt.Errorf("%s answered %d %s", c.Base, status, strings.ToValidUTF8(excerpt, "?"))})
}

// answeredError is what a daemon has written by Error.
type answeredError string

func (e answeredError) Error() string { return string(e) }

// IsAnswer reports whether an error of Do is in the words of the daemon that was called.
func IsAnswer(err error) bool { return errors.As(err, new(answeredError)) }

// foreignError is an answer that no daemon gives: outside 2xx without the body that Error writes, too long, or not in JSON.
type foreignError struct{ error }

func (e foreignError) Unwrap() error { return e.error }

// IsForeign reports whether an error of Do is the answer of another program than a daemon, such as a
// proxy or a server at a wrong address: its kind says nothing about what was sent.
func IsForeign(err error) bool { return errors.As(err, new(foreignError)) }
