package discordapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"arizuko/pkg/adapter"
)

// version is the API's, and the gateway's.
const version = "/api/v9/"

// maxAnswer bounds an answer, in bytes; a hundred messages are far smaller.
const maxAnswer = 16 << 20

// isCDN reports whether Discord keeps files on a host. Fakes keep them on the API's own host.
func isCDN(host string) bool { return host == "cdn.discordapp.com" || host == "media.discordapp.net" }

// Client calls the REST API. Unlike the library's own calls it never waits for a rate limit and never
// retries. It is safe for concurrent use.
type Client struct {
	base    string // without a slash at its end
	token   string
	http    *http.Client
	buckets *buckets
}

// NewClient calls the API at base, https://discord.com for Discord itself, by a client of package
// adapter.
func NewClient(base, token string, by *http.Client) *Client {
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: by, buckets: newBuckets(time.Now)}
}

// With returns a client that knows the same rate limits and calls by another client of package adapter.
func (c *Client) With(by *http.Client) *Client {
	other := *c
	other.http = by
	return &other
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Params of a call, as JSON.
type Params map[string]any

// Upload is a file to be sent.
type Upload struct {
	Name string
	Data io.Reader
}

// Call calls a path below /api/v9/ and decodes the answer into out, unless that is nil. A nil body is
// none. It returns an *Error if the API refuses, or would refuse because a rate limit is reached.
// After any other error, except adapter.ErrUnsent, the call may have been carried out. No error
// contains the token.
func (c *Client) Call(ctx context.Context, method, path string, body, out any, files ...Upload) error {
	what := method + " " + withoutSecrets(path)
	if wait, all := c.buckets.wait(method, path); wait > 0 {
		refused := &Error{Status: http.StatusTooManyRequests, Message: "not called: the rate limit is reached",
			RetryAfter: wait, Account: all}
		return fmt.Errorf("%s: %w", what, refused)
	}
	req, err := c.request(ctx, method, path, body, files)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", what, adapter.ErrUnsent, err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", what, adapter.TransportError(err))
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	refused := refusal(res, answer)
	c.buckets.update(method, path, res.Header, refused)
	switch {
	case refused != nil:
		return fmt.Errorf("%s: %w", what, refused)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case out == nil && len(answer) == 0:
		return nil
	case out == nil:
		out = new(json.RawMessage) // a page shows that the call has not come to Discord
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s: invalid answer: %w", what, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, body any, files []Upload) (*http.Request, error) {
	var content io.Reader
	kind := ""
	if body != nil {
		payload, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content, kind = bytes.NewReader(payload), "application/json"
		if len(files) > 0 {
			if content, kind, err = form(payload, files); err != nil {
				return nil, err
			}
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+version+path, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bot "+c.token)
	req.Header.Set("User-Agent", "DiscordBot (arizuko, 1)")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	return req, nil
}

// form is a body with files. They fit into memory, so that a file that cannot be read is not sent in
// part, and the length is known.
func form(payload []byte, files []Upload) (io.Reader, string, error) {
	var b bytes.Buffer
	parts := multipart.NewWriter(&b)
	err := parts.WriteField("payload_json", string(payload))
	for i, f := range files {
		var part io.Writer
		if err == nil {
			part, err = parts.CreateFormFile(fmt.Sprintf("files[%d]", i), f.Name)
		}
		if err == nil {
			_, err = io.Copy(part, f.Data)
		}
	}
	return &b, parts.FormDataContentType(), errors.Join(err, parts.Close())
}

// refusal is the error in an answer, nil if there is none.
func refusal(res *http.Response, answer []byte) *Error {
	if res.StatusCode < http.StatusMultipleChoices {
		return nil
	}
	var answered struct {
		Code       int             `json:"code"`
		Message    string          `json:"message"`
		Errors     json.RawMessage `json:"errors"`
		RetryAfter float64         `json:"retry_after"` // seconds
	}
	err := json.Unmarshal(answer, &answered)
	if err != nil || answered.Message == "" {
		answered.Message = strings.TrimSpace(http.StatusText(res.StatusCode))
	}
	if len(answered.Errors) > 0 {
		const maxErrors = 300
		answered.Message += " " + string(answered.Errors[:min(maxErrors, len(answered.Errors))])
	}
	refused := &Error{Status: res.StatusCode, Code: answered.Code, Message: answered.Message, Foreign: err != nil,
		sends: res.Request.Method == http.MethodPost}
	if res.StatusCode == http.StatusTooManyRequests {
		refused.RetryAfter = max(seconds(answered.RetryAfter), headerSeconds(res.Header, "Retry-After"))
		if refused.ofOneMessage() && refused.RetryAfter == 0 {
			refused.RetryAfter = adapter.ForeignWait
		}
	}
	return refused
}

// withoutSecrets removes the token from the path of an interaction.
func withoutSecrets(path string) string {
	if parts := strings.Split(path, "/"); parts[0] == "interactions" && len(parts) > 2 {
		return strings.Join(parts[:2], "/")
	}
	path, _, _ = strings.Cut(path, "?")
	return path
}

// Download downloads a file of a message by its URL, which must be one of Discord's. It does not
// send the token.
func (c *Client) Download(ctx context.Context, from string, w io.Writer) error {
	where, err := url.Parse(from)
	if err != nil || !c.keeps(where) {
		return errors.New("the file is not on a server of Discord's")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return errors.New("invalid file URL")
	}
	direct := *c.http
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return adapter.Download(&direct, req, w, nil)
}

// keeps reports whether Discord keeps files at a URL.
func (c *Client) keeps(where *url.URL) bool {
	base, err := url.Parse(c.base)
	if err != nil {
		return false
	}
	own := where.Scheme == base.Scheme && where.Host == base.Host
	return own || where.Scheme == "https" && isCDN(where.Host)
}
