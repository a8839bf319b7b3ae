package adapter

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"arizuko/pkg/config"
)

const (
	// CheckTimeout bounds the whole of check, probeTimeout its first call.
	CheckTimeout = 30 * time.Second
	probeTimeout = 10 * time.Second
	// maxProbed bounds what is read of the first answer, in bytes; maxExcerpt what is printed of it.
	maxProbed  = 64 << 10
	maxExcerpt = 200
)

// Probe is the first call of check. It tells a server that is the platform's API, whatever that answers, from one
// that is not, and from none.
type Probe struct {
	API      string     // what the server should be: "the Bot API"
	Variable string     // that of the URL: TELEGRAM_API_URL
	URL      config.URL // its value
	// Valid reports whether an object of JSON is an answer of the API.
	Valid func(answer map[string]any) bool
}

// Run sends a request, and returns an error that says what an operator can do if the API does not answer it.
func (p Probe) Run(ctx context.Context, c *http.Client, req *http.Request) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	res, err := c.Do(req.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("%s does not answer: %s (%w)", p.URL, p.unreachable(err), TransportError(err))
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxProbed))
	if err != nil {
		return fmt.Errorf("%s does not answer: the connection ended in the middle of an answer (%w)", p.URL, err)
	}
	return p.answered(res, body)
}

// unreachable says what is wrong with a server that has not answered.
func (p Probe) unreachable(err error) string {
	var name *net.DNSError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &name):
		return "its name cannot be resolved: look at " + p.Variable + ", and at the name servers of this machine"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing accepts connections there: look at " + p.Variable + ", and whether the server runs"
	case errors.As(err, &certificate):
		return "its certificate is not valid for it: look at " + p.Variable + ", and at the clock of this machine"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "it does not speak TLS: " + p.Variable + " may have to begin with http://"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT), isTimeout(err):
		return fmt.Sprintf("nothing came for %s: a firewall may hold up the connection, or the server hangs", probeTimeout)
	}
	return "the connection broke: try again, and look at proxies and firewalls between"
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// answered returns an error for an answer that is not of the API, or says that the API is out of order.
func (p Probe) answered(res *http.Response, body []byte) error {
	var object map[string]any
	isObject := json.Unmarshal(body, &object) == nil
	switch trimmed := bytes.TrimSpace(body); {
	case res.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("%s answers %s: too many calls came from this address or bot; check again %s", p.URL, res.Status, retryAdvice(res, object))
	case res.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%s answers %s: it, or the server behind it, is out of order; check again in some minutes", p.URL, res.Status)
	case bytes.HasPrefix(trimmed, []byte("<")):
		return fmt.Errorf("%s answers %s with a web page: this is not %s, look at %s", p.URL, res.Status, p.API, p.Variable)
	case len(trimmed) == 0:
		return fmt.Errorf("%s answers %s with nothing: this is not %s, look at %s", p.URL, res.Status, p.API, p.Variable)
	case !isObject || !p.Valid(object):
		return fmt.Errorf("%s answers %s with %s: this is not %s, look at %s", p.URL, res.Status, excerpt(trimmed), p.API, p.Variable)
	}
	return nil
}

// retryAdvice says how long an answer asks to wait.
func retryAdvice(res *http.Response, object map[string]any) string {
	seconds, _ := strconv.ParseFloat(res.Header.Get("Retry-After"), 64) // 0 without one
	for _, in := range []any{object["retry_after"], object["parameters"]} {
		if parameters, ok := in.(map[string]any); ok {
			in = parameters["retry_after"]
		}
		if given, ok := in.(float64); ok {
			seconds = max(seconds, given)
		}
	}
	if seconds <= 0 {
		return "in some minutes"
	}
	return fmt.Sprintf("in %s", (time.Duration(seconds*float64(time.Second)) + time.Second - 1).Truncate(time.Second))
}

// excerpt is the beginning of an answer.
func excerpt(body []byte) string {
	if len(body) > maxExcerpt {
		body = append(body[:maxExcerpt:maxExcerpt], "…"...)
	}
	return strings.ToValidUTF8(string(body), "?")
}

// TokenProblem returns what is wrong with the form of a token, nil if nothing is. It does not quote it.
func TokenProblem(variable, token string) error {
	switch {
	case strings.ContainsFunc(token, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		for _, scheme := range []string{"Bot ", "Bearer "} {
			if strings.HasPrefix(token, scheme) {
				return fmt.Errorf("%s: begins with %q: set the token alone", variable, scheme)
			}
		}
		return fmt.Errorf("%s: contains a blank or a line break: copy the token again", variable)
	case strings.ContainsAny(token, "\"'`“”‘’<>"):
		return fmt.Errorf("%s: contains a quote or a bracket: set the token alone", variable)
	}
	return nil
}
