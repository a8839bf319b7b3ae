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
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"arizuko/pkg/config"
)

const (
	// CheckTimeout bounds the whole of check, checkCallTimeout each of its calls.
	CheckTimeout     = 25 * time.Second
	checkCallTimeout = 10 * time.Second
	// maxChecked bounds an answer, in bytes, and maxExcerpt an excerpt of one that is printed.
	maxChecked = 8 << 20
	maxExcerpt = 200
)

// APICheck makes the calls of check. It tells a server that is the platform's API, whatever that answers, from one
// that is not, from one that is out of order, and from none.
type APICheck struct {
	API      string     // a name for the right server: "the Bot API"
	Variable string     // that of the URL: TELEGRAM_API_URL
	URL      config.URL // its value
	// Valid reports whether the JSON that is answered to a call, named by the last part of its path, is of the API.
	Valid func(call string, status int, answer any) bool
}

// Client returns a client that calls as c does. Its errors give advice to operators if something else than the API
// answers, or nothing.
func (p APICheck) Client(c *http.Client) *http.Client {
	return &http.Client{Transport: checkTransport{p, c.Transport}}
}

type checkTransport struct {
	APICheck
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p checkTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), checkCallTimeout)
	defer cancel()
	begun := time.Now()
	res, err := p.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %s (%w)", p.URL, p.unreachable(err, time.Since(begun)), err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxChecked))
	switch {
	case isTimeout(err):
		return nil, fmt.Errorf("%s does not answer: the rest of an answer did not come for %s", p.URL,
			time.Since(begun).Round(time.Second))
	case err != nil:
		return nil, fmt.Errorf("%s does not answer: the connection ended in the middle of an answer (%w)", p.URL, err)
	}
	if err := p.outOfOrder(res, path.Base(req.URL.Path), body); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// unreachable explains why a server may not have answered.
func (p APICheck) unreachable(err error, waited time.Duration) string {
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
	case isTimeout(err):
		return fmt.Sprintf("nothing came for %s: a firewall may hold up the connection, or the server hangs",
			waited.Round(time.Second))
	}
	return "the connection broke: try again, and look at proxies and firewalls between"
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// outOfOrder returns an error for an answer that is not of the API, or says that the API is out of order.
func (p APICheck) outOfOrder(res *http.Response, call string, body []byte) error {
	var answer any
	isJSON := json.Unmarshal(body, &answer) == nil
	problem := ""
	switch trimmed := bytes.TrimSpace(body); {
	case res.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("%s answers %s: too many calls came from this address or bot; check again %s", p.URL,
			res.Status, retryAdvice(res, answer))
	case res.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%s answers %s: it, or the server behind it, is out of order; check again in some minutes",
			p.URL, res.Status)
	case res.StatusCode/100 == 3:
		problem = fmt.Sprintf("a redirect to %q", excerpt([]byte(res.Header.Get("Location"))))
	case bytes.HasPrefix(trimmed, []byte("<")):
		problem = "a web page"
	case len(trimmed) == 0:
		problem = "nothing"
	case !isJSON || !p.Valid(call, res.StatusCode, answer):
		problem = excerpt(trimmed)
	default:
		return nil
	}
	return fmt.Errorf("%s answers %s with %s: this is not %s, look at %s", p.URL, res.Status, problem, p.API,
		p.Variable)
}

// retryAdvice says how long an answer asks to wait.
func retryAdvice(res *http.Response, answer any) string {
	object, _ := answer.(map[string]any)
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

// excerpt is the beginning of an answer, on one line.
func excerpt(body []byte) string {
	if len(body) > maxExcerpt {
		body = append(body[:maxExcerpt:maxExcerpt], "…"...)
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "?")), " ")
}

// TokenProblem returns an error if a token can't be valid by its form. The error does not quote it.
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
	for _, r := range token {
		if r > unicode.MaxASCII {
			return fmt.Errorf("%s: contains %U, which may be invisible and is in no token: copy the token again",
				variable, r)
		}
	}
	return nil
}
