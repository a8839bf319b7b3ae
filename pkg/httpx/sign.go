package httpx

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/apierr"
)

// A daemon on another machine is not sent the secret, but a request that only a client with the secret can have made:
//
//	Authorization: Arizuko <time in ms> <nonce> <SHA-256 of the body> <MAC>
//
// The MAC, HMAC-SHA256 with the secret as its key, is over these lines, each but the last followed by a line feed:
//
//	arizuko request 1, daemon's name, method, path with query, Accept, Content-Type, Arizuko-By, time, nonce, hash of the body
//
// The daemon's name keeps a request from being passed on to another daemon, the nonce from being sent again, and the
// time bounds how long nonces are kept. The header Arizuko-Signature of the answer is the MAC of
//
//	arizuko answer 1, nonce, status, Content-Type, SHA-256 of the body
//
// All hashes and MACs are in hexadecimal digits.
const (
	signedScheme = "Arizuko"
	answerHeader = "Arizuko-Signature"
	requestKind  = "arizuko request 1"
	answerKind   = "arizuko answer 1"
	// maxClockSkew is how far the clocks of two machines may differ.
	maxClockSkew = time.Minute
)

func macOf(secret string, lines ...string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, strings.Join(lines, "\n")) // a hash takes everything
	return hex.EncodeToString(mac.Sum(nil))
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func sameMAC(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// signed is a signed request.
type signed struct{ secret, nonce string }

// sign adds the signature to a request to a daemon, which sees the path.
func sign(req *http.Request, daemon, secret, path string, body []byte, now time.Time) *signed {
	at, nonce, hash := strconv.FormatInt(now.UnixMilli(), 10), rand.Text(), hashOf(body)
	mac := requestMAC(secret, daemon, req.Method, path, req.Header, at, nonce, hash)
	req.Header.Set("Authorization", strings.Join([]string{signedScheme, at, nonce, hash, mac}, " "))
	return &signed{secret, nonce}
}

func requestMAC(secret, daemon, method, path string, h http.Header, at, nonce, hash string) string {
	return macOf(secret, requestKind, daemon, method, path, h.Get("Accept"), h.Get("Content-Type"), h.Get(byHeader), at,
		nonce, hash)
}

// answeredBy reports whether an answer to the request is by a server with the secret.
func (s *signed) answeredBy(res *http.Response, body []byte) bool {
	return sameMAC(res.Header.Get(answerHeader), s.answerMAC(res.StatusCode, res.Header, body))
}

func (s *signed) answerMAC(status int, h http.Header, body []byte) string {
	return macOf(s.secret, answerKind, s.nonce, strconv.Itoa(status), h.Get("Content-Type"), hashOf(body))
}

type provenKey struct{}

// proven marks a request as one of a client that has the secret.
func proven(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), provenKey{}, true))
}

func isProven(r *http.Request) bool {
	is, _ := r.Context().Value(provenKey{}).(bool)
	return is
}

// Verify takes requests to the daemon of this name that are signed with the secret for such that show it, see
// HasSecret, and signs their answers. It refuses a signature that is wrong, came before, or is older than the process
// or a minute. Requests without a signature pass as they are.
func Verify(daemon string, secret func() string) func(http.Handler) http.Handler {
	nonces := &nonces{started: time.Now().UnixMilli(), seen: map[string]bool{}}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			if !strings.EqualFold(scheme, signedScheme) || isProven(r) {
				next.ServeHTTP(w, r)
				return
			}
			request, err := verify(r, daemon, secret(), strings.Fields(rest), nonces)
			if err != nil {
				Error(w, err)
				return
			}
			answer := &signedAnswer{ResponseWriter: w, request: request}
			next.ServeHTTP(answer, proven(r))
			answer.send()
		})
	}
}

// verify checks a signature before it reads anything of the body, and then that.
func verify(r *http.Request, daemon, secret string, fields []string, nonces *nonces) (*signed, error) {
	if secret == "" || len(fields) != 4 {
		return nil, apierr.New(apierr.Unauthorized, "Authorization: want %s, time, nonce, hash of the body, MAC",
			signedScheme)
	}
	at, nonce, hash := fields[0], fields[1], fields[2]
	if !sameMAC(fields[3], requestMAC(secret, daemon, r.Method, r.URL.RequestURI(), r.Header, at, nonce, hash)) {
		return nil, apierr.New(apierr.Unauthorized, "the signature is not one for %s with its ARIZUKO_SECRET", daemon)
	}
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return nil, apierr.New(apierr.Unauthorized, "Authorization: the time is no number")
	}
	if err := nonces.use(nonce, ms, time.Now().UnixMilli()); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, decodeError(err)
	}
	if hashOf(body) != hash {
		return nil, apierr.New(apierr.Unauthorized, "the body is not the one that was signed")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return &signed{secret, nonce}, nil
}

// nonces are those of requests that are not too old to be taken. Only a client that has the secret adds one.
type nonces struct {
	started int64 // ms: another process may have taken requests that were signed before that

	mu     sync.Mutex
	seen   map[string]bool
	order  []usedNonce // as they came
	forgot int64       // ms: the newest time of a nonce that was removed; the clock may have been ahead then
}

type usedNonce struct {
	nonce string
	at    int64 // ms, when it was signed
}

// use notes the nonce of a request that was signed at a time. The error says why it may not be taken.
func (n *nonces) use(nonce string, at, now int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	oldest := now - maxClockSkew.Milliseconds()
	for len(n.order) > 0 && n.order[0].at < oldest {
		delete(n.seen, n.order[0].nonce)
		n.forgot = max(n.forgot, n.order[0].at)
		n.order = n.order[1:]
	}
	switch {
	case at < oldest || at > now+maxClockSkew.Milliseconds():
		return apierr.New(apierr.Unauthorized, "the signature's time differs by %s from this machine's clock",
			time.Duration(now-at)*time.Millisecond)
	case at < n.started:
		return apierr.New(apierr.Unauthorized, "signed before this process started")
	case n.seen[nonce], n.forgot > 0 && at <= n.forgot:
		return apierr.New(apierr.Unauthorized, "the request came before")
	}
	n.seen[nonce] = true
	n.order = append(n.order, usedNonce{nonce, at})
	return nil
}

// signedAnswer holds an answer until it is whole, to sign it.
type signedAnswer struct {
	http.ResponseWriter
	request *signed
	status  int
	body    bytes.Buffer
	tooLong bool
}

// WriteHeader keeps the status. Informational ones are not sent.
func (a *signedAnswer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
}

// Write returns an error beyond the size that a client reads.
func (a *signedAnswer) Write(p []byte) (int, error) {
	if a.body.Len()+len(p) > maxAnswer {
		a.tooLong = true
		return 0, fmt.Errorf("a signed answer has at most %d bytes", maxAnswer)
	}
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush does nothing: the answer is sent when it is whole.
func (a *signedAnswer) Flush() {}

// Unwrap is for http.ResponseController.
func (a *signedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// send signs and sends the answer, unless it was too long: a part of it is none.
func (a *signedAnswer) send() {
	if a.tooLong {
		a.ResponseWriter.WriteHeader(http.StatusInternalServerError)
		return
	}
	a.WriteHeader(http.StatusOK)
	h := a.Header()
	if a.body.Len() > 0 && h.Get("Content-Type") == "" {
		h.Set("Content-Type", http.DetectContentType(a.body.Bytes())) // as the server would, after the signature
	}
	h.Set(answerHeader, a.request.answerMAC(a.status, h, a.body.Bytes()))
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(a.body.Bytes()) // it fails only if the client has gone away
}
