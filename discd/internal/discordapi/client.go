package discordapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// version is the API's; the library speaks the same one on the gateway.
const version = "/api/v9/"

// answerMost bounds an answer that is read, in bytes; a hundred messages are far below.
const answerMost = 16 << 20

// cdn are the hosts on which Discord keeps files, besides the API's own in a stand-in.
func cdn(host string) bool { return host == "cdn.discordapp.com" || host == "media.discordapp.net" }

// Client calls the REST API. It never waits and never tries again: the library's own calls sleep
// while a bucket is empty. It is safe for concurrent use.
type Client struct {
	base    string // without a slash at its end
	token   string
	http    *http.Client
	buckets *buckets
}

// NewClient calls the API at base, https://discord.com for Discord itself.
func NewClient(base, token string) *Client {
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: &http.Client{}, buckets: newBuckets(time.Now)}
}

// Params of a call, as JSON.
type Params map[string]any

// Upload is a file to be sent.
type Upload struct {
	Name string
	Data io.Reader
}

// Error is the API's refusal of a call.
type Error struct {
	Status     int // HTTP's
	Code       int // Discord's own, 0 for none
	Message    string
	RetryAfter time.Duration // of 429
}

func (e *Error) Error() string {
	if e.Code == 0 {
		return fmt.Sprintf("Discord says %d: %s", e.Status, e.Message)
	}
	return fmt.Sprintf("Discord says %d: %s (%d)", e.Status, e.Message, e.Code)
}

// ErrUnsent is wrapped by errors of calls that never reached the API.
var ErrUnsent = errors.New("not reached")

// Call calls a path below /api/v9/ and reads the answer into out, unless that is nil. A nil body is
// none. It returns an *Error if the API refuses, or would refuse because its limit is reached; after
// any other error but ErrUnsent nobody knows whether it was done. No error holds the token.
func (c *Client) Call(ctx context.Context, method, path string, body, out any, files ...Upload) error {
	what := method + " " + withoutSecrets(path)
	if wait := c.buckets.wait(method, path); wait > 0 {
		return fmt.Errorf("%s: %w", what, &Error{Status: http.StatusTooManyRequests, Message: "its limit is reached, so it is not asked", RetryAfter: wait})
	}
	req, err := c.request(ctx, method, path, body, files)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrUnsent, err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", what, withoutURL(err))
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, answerMost))
	refused := refusal(res, answer)
	c.buckets.heed(method, path, res.Header, refused)
	switch {
	case refused != nil:
		return fmt.Errorf("%s: %w", what, refused)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s: the answer is not what it should be: %w", what, err)
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

// form is a body with files. They are small enough to be held in memory: what cannot be read is not
// sent in part, and the length is known.
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

// refusal is what an answer refuses, nil for nothing.
func refusal(res *http.Response, answer []byte) *Error {
	if res.StatusCode < http.StatusMultipleChoices {
		return nil
	}
	var told struct {
		Code       int             `json:"code"`
		Message    string          `json:"message"`
		Errors     json.RawMessage `json:"errors"`
		RetryAfter float64         `json:"retry_after"` // seconds
	}
	if json.Unmarshal(answer, &told) != nil || told.Message == "" {
		told.Message = strings.TrimSpace(http.StatusText(res.StatusCode))
	}
	if len(told.Errors) > 0 {
		const most = 300
		told.Message += " " + string(told.Errors[:min(most, len(told.Errors))])
	}
	refused := &Error{Status: res.StatusCode, Code: told.Code, Message: told.Message}
	if res.StatusCode == http.StatusTooManyRequests {
		refused.RetryAfter = max(seconds(told.RetryAfter), headerSeconds(res.Header, "Retry-After"))
	}
	return refused
}

// withoutSecrets takes the token out of a path of an interaction.
func withoutSecrets(path string) string {
	if parts := strings.Split(path, "/"); parts[0] == "interactions" && len(parts) > 2 {
		return strings.Join(parts[:2], "/")
	}
	path, _, _ = strings.Cut(path, "?")
	return path
}

// withoutURL takes the address out of an error, where it is told already.
func withoutURL(err error) error {
	var where *url.Error
	if errors.As(err, &where) {
		err = where.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	return err
}

// Download writes a file of a message. Messages name it by its address, which nobody but Discord
// writes; only Discord is asked for it, and not told the token.
func (c *Client) Download(ctx context.Context, address string, w io.Writer) error {
	where, err := url.Parse(address)
	if err != nil || !c.keeps(where) {
		return errors.New("the file is not kept by Discord")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the file's address is none")
	}
	direct := *c.http
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := direct.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the file server answers %s", res.Status)
	}
	_, err = io.Copy(w, res.Body)
	return err
}

// keeps reports whether Discord keeps files at an address.
func (c *Client) keeps(where *url.URL) bool {
	base, err := url.Parse(c.base)
	if err != nil {
		return false
	}
	own := where.Scheme == base.Scheme && where.Host == base.Host
	return own || where.Scheme == "https" && cdn(where.Host)
}
