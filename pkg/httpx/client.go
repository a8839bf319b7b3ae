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
	"net/url"
	"strings"
	"time"

	"arizuko/pkg/apierr"
)

const (
	clientTimeout = 10 * time.Second
	dialTimeout   = 2 * time.Second
	clientIdle    = 90 * time.Second
	// maxAnswer is the size up to which a client reads an answer, in bytes.
	maxAnswer = 8 << 20
)

// Client calls one other daemon. It is safe for concurrent use and keeps connections alive. The shared secret never
// leaves the process: on a socket the folder says who listens, elsewhere the request is signed, and so must the answer
// be.
type Client struct {
	Base string // URL without a trailing slash
	HTTP *http.Client

	socket         string // "" for a daemon at a URL
	peer           string // the daemon's name in errors: its URL or its socket
	daemon, secret string // what requests are signed for and with; no secret on a socket
	unproven       bool   // answers need not be signed
}

// NewClient returns a client of a daemon at a URL, with a timeout of 10 s per call. It ignores proxies and follows no
// redirects. Requests are signed with the secret, for the daemon of this name alone, see Verify; an answer over plain
// HTTP must be signed too. Without a secret it shows none and takes every answer.
func NewClient(daemon, base, secret string) *Client {
	return &Client{Base: base, HTTP: newHTTP((&net.Dialer{Timeout: dialTimeout}).DialContext), peer: base,
		daemon: daemon, secret: secret}
}

func newHTTP(dial Dial) *http.Client {
	return &http.Client{Timeout: clientTimeout, Transport: pooled(dial),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// AcceptUnsigned makes the client take answers that are not signed, and returns it: of a service that an operator has
// written, which knows no secret.
func (c *Client) AcceptUnsigned() *Client {
	c.unproven = true
	return c
}

func pooled(dial Dial) *http.Transport {
	// A signature is over the body as it was sent.
	return &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16, IdleConnTimeout: clientIdle,
		DisableCompression: true}
}

// Dial makes a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// DialWith makes new connections of the client by dial, which gets the address in Base.
func (c *Client) DialWith(dial Dial) { c.HTTP.Transport = pooled(dial) }

// String is the daemon's name in errors: its URL or its socket.
func (c *Client) String() string { return c.peer }

// Raw, as the out of Do, receives an answer as it is.
type Raw []byte

// Do sends in as JSON, unless nil, and decodes the answer into out, unless nil. Without out the answer must be JSON
// too, or empty. Every error has a kind: the one the daemon answered with, unavailable if it does not answer in time or
// cannot prove who it is, internal if the answer cannot be decoded. IsAnswer and IsForeign say who made the error.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	status, body, err := c.exchange(ctx, method, path, in)
	switch {
	case err != nil:
		return err
	case status < 200 || status > 299:
		return c.refused(status, body)
	case out == nil && (len(body) == 0 || json.Valid(body)):
		return nil
	case out == nil:
		return apierr.New(apierr.Internal, "%w", foreignError{fmt.Errorf("%s%s answered %d with what is no JSON", c,
			path, status)})
	}
	if raw, ok := out.(*Raw); ok {
		*raw = body
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return apierr.New(apierr.Internal, "%w", foreignError{fmt.Errorf("decode the answer of %s%s: %w", c, path,
			err)})
	}
	return nil
}

// Get returns the status and the body of an answer, whichever it is.
func (c *Client) Get(ctx context.Context, path string) (status int, body []byte, err error) {
	return c.exchange(ctx, http.MethodGet, path, nil)
}

// exchange sends a request and reads its answer, of a daemon that has proved who it is. Its errors are as those of Do.
func (c *Client) exchange(ctx context.Context, method, path string, in any) (status int, body []byte, err error) {
	req, sent, err := c.request(ctx, method, path, in)
	if err != nil {
		return 0, nil, apierr.New(apierr.Internal, "%s %s%s: %w", method, c, path, err)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return 0, nil, apierr.New(apierr.Unavailable, "%s does not answer: %w", c, err)
	}
	defer res.Body.Close()
	// Read to the end, else the connection cannot be reused.
	body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, apierr.New(apierr.Unavailable, "read the answer of %s: %w", c, err)
	case len(body) > maxAnswer:
		return 0, nil, apierr.New(apierr.Internal, "%w", foreignError{fmt.Errorf("%s answered with more than %d bytes",
			c, maxAnswer)})
	case sent != nil && !c.unproven && req.URL.Scheme != "https" && !sent.answeredBy(res, body):
		return 0, nil, apierr.New(apierr.Unavailable, "%w", foreignError{fmt.Errorf(
			"%s answered %d without a valid signature: another program listens there, it has another ARIZUKO_SECRET, "+
				"or the clocks differ by more than %s",
			c, res.StatusCode, maxClockSkew)})
	}
	return res.StatusCode, body, nil
}

func (c *Client) request(ctx context.Context, method, path string, in any) (*http.Request, *signed, error) {
	var encoded []byte
	var body io.Reader
	if in != nil {
		var err error
		if encoded, err = json.Marshal(in); err != nil {
			return nil, nil, err
		}
		body = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if who, ok := ctx.Value(byKey{}).(string); ok && who != "" {
		req.Header.Set(byHeader, who)
	}
	if c.secret == "" {
		return req, nil, nil
	}
	seen := req.URL.RequestURI()
	if base, err := url.Parse(c.Base); err == nil && path != "" {
		seen = strings.TrimPrefix(seen, base.EscapedPath()) // which a proxy takes away
	}
	return req, sign(req, c.daemon, c.secret, seen, encoded, time.Now()), nil
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
	return apierr.New(kind, "%w", foreignError{fmt.Errorf("%s answered %d %s", c, status,
		strings.ToValidUTF8(excerpt, "?"))})
}

// answeredError is an error that a daemon has written by Error.
type answeredError string

func (e answeredError) Error() string { return string(e) }

// IsAnswer reports whether an error of Do is in the words of the daemon that was called.
func IsAnswer(err error) bool { return errors.As(err, new(answeredError)) }

// foreignError is an answer that no daemon gives: without the signature or, outside 2xx, the body that Error writes,
// too long, or not in JSON.
type foreignError struct{ error }

func (e foreignError) Unwrap() error { return e.error }

// IsForeign reports whether an error of Do is the answer of another program than a daemon, such as a
// proxy or a server at a wrong address: its kind says nothing about the request.
func IsForeign(err error) bool { return errors.As(err, new(foreignError)) }
